import { type JsonObject, type JsonValue } from '../common/json.js';
import { SessionsError } from '../common/sessions.error.js';
import { fieldOf, withoutProxy } from '../common/thrown.js';
import { type TurnErrorRecord } from './turn.js';

const MAX_MESSAGE = 2000;
/** The maximum length of names and codes. */
const MAX_NAME = 256;

const MAX_STRINGS = 256;

/** Converts any thrown value to the record stored with the turn: without a stack, and limited in size. */
export function toErrorRecord(thrown: unknown): TurnErrorRecord {
  const error = withoutProxy(thrown);
  if (typeof error !== 'object' || error === null) {
    return { name: 'Error', message: clip(typeof error === 'string' ? error : `Thrown: ${typeof error}`) };
  }
  // Not instanceof Error: it fails for errors of another realm and of some clients. The fields may have any type.
  const [name, message, code] = ['name', 'message', 'code'].map((field) => fieldOf(error, field));
  return {
    name: typeof name === 'string' ? clip(name, MAX_NAME) : 'Error',
    message: clip(typeof message === 'string' ? message : 'Thrown: object'),
    ...(typeof code === 'string' ? { code: clip(code, MAX_NAME) } : {}),
    ...(SessionsError.isInstance(error) ? { details: fieldsOf(error) } : {}),
  };
}

/** Returns the fields of a typed error that contain a string, a number or strings, such as ids and names. */
function fieldsOf(error: SessionsError): JsonObject {
  const fields = Object.keys(error).flatMap((key): [string, JsonValue][] => {
    if (key === 'name' || key === 'code') return [];
    const value = fieldOf(error, key);
    if (typeof value === 'string') return [[key, clip(value)]];
    if (typeof value === 'number') return [[key, value]];
    return isStrings(value) ? [[key, value.slice(0, MAX_STRINGS).map((item) => clip(item))]] : [];
  });
  return Object.fromEntries(fields);
}

function isStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

function clip(text: string, length = MAX_MESSAGE): string {
  return text.length > length ? `${text.slice(0, length)}...` : text;
}

/** The longest pause that an error can ask for: an hour. */
const MAX_RETRY_AFTER_MS = 3_600_000;
/** The maximum number of nested errors that are searched for a pause. */
const MAX_DEPTH = 5;

/**
 * Returns the pause that an error asks for before the next attempt, by its property `retryAfterMs` (AIS-07), in
 * milliseconds; 0 if it asks for none. Without the property, `lastError` is searched, which a `RetryError` of the AI
 * SDK has, and then `cause`.
 */
export function retryAfterMs(error: unknown, depth = 0): number {
  if (typeof error !== 'object' || error === null || depth > MAX_DEPTH) return 0;
  const [pause, lastError, cause] = ['retryAfterMs', 'lastError', 'cause'].map((field) => fieldOf(error, field));
  if (typeof pause === 'number' && pause > 0) return Math.min(Math.ceil(pause), MAX_RETRY_AFTER_MS);
  return retryAfterMs(lastError, depth + 1) || retryAfterMs(cause, depth + 1);
}

/** Returns whether the error is marked `permanent`, so that the turn is not retried (TRN-08). */
export function isPermanent(error: unknown): boolean {
  return fieldOf(error, 'permanent') === true;
}
