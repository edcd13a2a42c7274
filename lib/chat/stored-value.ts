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

/** Returns a copy of the value that was passed to {@link encode}. JSON that `encode` does not return stays as it is. */
export function decode(json: JsonValue): unknown {
  if (typeof json !== 'object' || json === null) return json;
  if (Array.isArray(json)) return (json as readonly JsonValue[]).map(decode);
  const { [TYPE]: type, value } = json as JsonObject;
  return type === undefined ? decodeFields(Object.entries(json)) : (restored(type, value) ?? json);
}

/** @returns `undefined` if {@link encode} does not return this type with this value */
function restored(type: JsonValue, value: JsonValue): unknown {
  if (type === 'object') return isEntries(value) ? decodeFields(value) : undefined;
  if (type === 'date' && value === null) return new Date(NaN);
  if (typeof value !== 'string') return undefined;
  switch (type) {
    case 'number':
      return Number(value);
    case 'date':
      return new Date(value);
    case 'bytes':
      return Uint8Array.from(Buffer.from(value, 'base64'));
    case 'url':
      return URL.canParse(value) ? new URL(value) : undefined;
    default:
      return undefined;
  }
}

function decodeFields(fields: readonly (readonly [string, JsonValue])[]): object {
  return Object.fromEntries(fields.map(([key, field]) => [key, decode(field)]));
}

function isEntries(value: JsonValue): value is [string, JsonValue][] {
  return Array.isArray(value) && value.every((entry) => Array.isArray(entry) && typeof entry[0] === 'string');
}

function encoded(type: string, value: JsonValue): JsonObject {
  return { [TYPE]: type, value };
}

/** Not `instanceof`, which fails for URLs of another realm. */
function isUrl(value: object): value is URL {
  return Object.prototype.toString.call(value) === '[object URL]';
}
