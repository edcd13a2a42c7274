import { types } from 'node:util';
import { isPlainObject, type JsonObject, type JsonValue } from '../common/json.js';

/** The field that marks an encoded value. */
const TYPE = '$type';
/** Keys that stored objects cannot have: {@link TYPE}, and the one that is rejected (FIX-64). */
const RESERVED: readonly string[] = [TYPE, '__proto__'];

/**
 * Encodes a value of the AI SDK as JSON: also dates, bytes, URLs and numbers that are not finite. {@link decode}
 * restores them; all bytes become a `Uint8Array`. Properties with the value `undefined` are dropped. Other values stay as they are, so
 * that the store rejects them with their path.
 */
export function encode(value: unknown): JsonValue {
  if (typeof value === 'number' && !Number.isFinite(value)) return encoded('number', String(value));
  if (typeof value !== 'object' || value === null) return value as JsonValue;
  if (Array.isArray(value)) return value.map(encode);
  if (types.isDate(value)) return encoded('date', Number.isNaN(value.getTime()) ? null : value.toISOString());
  if (types.isUint8Array(value)) return encoded('bytes', Buffer.from(value).toString('base64'));
  if (types.isAnyArrayBuffer(value)) return encode(new Uint8Array(value));
  if (isUrl(value)) return encoded('url', value.href);
  if (!isPlainObject(value)) return value as unknown as JsonValue;
  const entries = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .map(([key, field]) => [key, encode(field)] as const);
  const isReserved = entries.some(([key]) => RESERVED.includes(key));
  return isReserved ? encoded('object', entries) : Object.fromEntries(entries);
}

/** Returns a copy of the value that was passed to {@link encode}. */
export function decode(json: JsonValue): unknown {
  if (typeof json !== 'object' || json === null) return json;
  if (Array.isArray(json)) return (json as readonly JsonValue[]).map(decode);
  const { [TYPE]: type, value } = json as JsonObject;
  switch (type) {
    case undefined:
      return Object.fromEntries(Object.entries(json).map(([key, field]) => [key, decode(field)]));
    case 'number':
      return Number(value);
    case 'date':
      return new Date((value as string | null) ?? NaN);
    case 'bytes':
      return Uint8Array.from(Buffer.from(value as string, 'base64'));
    case 'url':
      return new URL(value as string);
    default:
      return Object.fromEntries((value as [string, JsonValue][]).map(([key, field]) => [key, decode(field)]));
  }
}

function encoded(type: string, value: JsonValue): JsonObject {
  return { [TYPE]: type, value };
}

/** Not `instanceof`, which fails for URLs of another realm. */
function isUrl(value: object): value is URL {
  return Object.prototype.toString.call(value) === '[object URL]';
}
