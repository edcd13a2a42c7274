import { type JsonObject, type JsonValue } from '../common/json.js';
import { SessionsError } from '../common/sessions.error.js';
import { type TurnErrorRecord } from './turn.js';

const MAX_MESSAGE = 2000;
/** Of names and codes. */
const MAX_NAME = 256;

const MAX_STRINGS = 256;

/** Whatever a handler threw, as it is stored with the turn: no stack, and not without bound. */
export function toErrorRecord(error: unknown): TurnErrorRecord {
  if (typeof error !== 'object' || error === null) {
    return { name: 'Error', message: clip(typeof error === 'string' ? error : `Thrown: ${typeof error}`) };
  }
  // Not instanceof Error: errors of another realm and of some clients are none. Their fields may be anything.
  const { name, message, code } = error as Record<string, unknown>;
  return {
    name: typeof name === 'string' ? clip(name, MAX_NAME) : 'Error',
    message: clip(typeof message === 'string' ? message : 'Thrown: object'),
    ...(typeof code === 'string' ? { code: clip(code, MAX_NAME) } : {}),
    ...(error instanceof SessionsError ? { details: fieldsOf(error) } : {}),
  };
}

/** The ids and names that a typed error carries. */
function fieldsOf(error: SessionsError): JsonObject {
  const fields: Record<string, JsonValue> = {};
  for (const [key, value] of Object.entries(error) as [string, unknown][]) {
    if (key === 'name' || key === 'code') continue;
    if (typeof value === 'string') fields[key] = clip(value);
    else if (typeof value === 'number') fields[key] = value;
    else if (isStrings(value)) fields[key] = value.slice(0, MAX_STRINGS).map((item) => clip(item));
  }
  return fields;
}

function isStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

function clip(text: string, length = MAX_MESSAGE): string {
  return text.length > length ? `${text.slice(0, length)}...` : text;
}

/** Errors marked `permanent` are not tried again (TRN-08). */
export function isPermanent(error: unknown): boolean {
  return typeof error === 'object' && error !== null && (error as { permanent?: unknown }).permanent === true;
}
