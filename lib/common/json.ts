import { StateSerializationError, TooLargeError } from './sessions.error.js';

/** A JSON value that is neither a list nor an object. */
export type JsonPrimitive = string | number | boolean | null;
/** A value that JSON preserves: no dates, no `undefined`, no class instances. */
export type JsonValue = JsonPrimitive | readonly JsonValue[] | JsonObject;
/** A JSON object. */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** The only key that can change a prototype: `copy[key] = value` calls its setter. Own keys of this name are rejected. */
const RESERVED_KEY = '__proto__';
const MAX_DEPTH = 200;

/**
 * Returns a deep copy of a value that JSON preserves.
 *
 * Properties with the value `undefined` count as absent, as in JSON.
 * @param path names the value in errors, for example `state` or `metadata`
 * @throws StateSerializationError with the path, for anything that JSON would change or reject, and for a key named
 * `__proto__` (FIX-64)
 */
export function toJson(value: unknown, path: string): JsonValue {
  try {
    return copy(value, path, []);
  } catch (error) {
    // The frames of nested values would displace that of the caller.
    if (error instanceof StateSerializationError) Error.captureStackTrace(error, toJson);
    ignoreRejections(value);
    throw error;
  }
}

/** Works like {@link toJson}, for a value that must be a plain object. */
export function toJsonObject(value: unknown, path: string): JsonObject {
  if (!isPlainObject(value)) throw rejected(value, path);
  return toJson(value, path) as JsonObject;
}

/**
 * Works like {@link toJsonObject}, for a caller's object. The object itself may be a class instance, such as a DTO, and
 * its own fields are read. Values inside it may not.
 */
export function toJsonFields(value: unknown, path: string): JsonObject {
  if (!isFields(value)) throw rejected(value, path);
  return toJson(isPlainObject(value) ? value : { ...(value as object) }, path) as JsonObject;
}

/**
 * Serializes a value returned by {@link toJson}.
 * @throws TooLargeError if the JSON is longer than `maxBytes` in UTF-8
 */
export function stringifyWithin(value: JsonValue, maxBytes: number, subject: string): string {
  const text = JSON.stringify(value);
  const bytes = Buffer.byteLength(text);
  if (bytes > maxBytes) throw new TooLargeError(subject, bytes, maxBytes);
  return text;
}

/** Checks the size of a value like {@link stringifyWithin}, but serializes it only if it may be too large. */
export function assertWithin(value: JsonValue, maxBytes: number, subject: string): void {
  if (mostBytesOf(value) > maxBytes) stringifyWithin(value, maxBytes, subject);
}

/** Returns an upper bound: a UTF-16 unit takes at most 6 bytes (an escape), and a number at most 25. */
function mostBytesOf(value: JsonValue | undefined): number {
  if (typeof value === 'string') return 6 * value.length + 2;
  if (typeof value !== 'object' || value === null) return 25;
  let bytes = 2;
  if (Array.isArray(value)) {
    for (const item of value as readonly JsonValue[]) bytes += 1 + mostBytesOf(item);
    return bytes;
  }
  for (const [key, item] of Object.entries(value)) bytes += 6 * key.length + 4 + mostBytesOf(item);
  return bytes;
}

/** Freezes a JSON value, or an object that contains some, recursively. @returns the same value */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.values(value).forEach(deepFreeze);
  return Object.freeze(value);
}

/** Returns true for object literals, parsed JSON objects and objects with a null prototype. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || isForeignObjectPrototype(prototype);
}

/**
 * Returns true for objects that callers may pass where fields are expected: plain objects and class instances, such as
 * the DTOs of `ValidationPipe({ transform: true })`. Returns false for arrays, dates, maps, errors, promises and other
 * built-ins.
 */
export function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.prototype.toString.call(value) === '[object Object]';
}

/** Converts an object with fields to a plain object with the same values; returns other values unchanged. */
export function fieldsOf(value: unknown): unknown {
  return isFields(value) ? { ...value } : value;
}

/** Objects of another realm (a vm context, a worker's message) have a different Object.prototype. */
function isForeignObjectPrototype(prototype: unknown): boolean {
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype as object, 'hasOwnProperty');
}

function copy(value: unknown, path: string, ancestors: readonly object[]): JsonValue {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new StateSerializationError(path, String(value));
    return value === 0 ? 0 : value;
  }
  if (typeof value !== 'object') throw new StateSerializationError(path, kindOf(value));
  if (ancestors.includes(value)) throw new StateSerializationError(path, 'a reference to an object that contains it');
  if (ancestors.length >= MAX_DEPTH)
    throw new StateSerializationError(path, `nested more than ${MAX_DEPTH} levels deep`);

  const inside = [...ancestors, value];
  if (Array.isArray(value)) {
    // Array.from includes holes, which JSON would turn into null.
    return Array.from(value, (item: unknown, index) => copy(item, `${path}[${index}]`, inside));
  }
  if (!isPlainObject(value)) throw new StateSerializationError(path, kindOf(value), cureOf(value));
  const result: Record<string, JsonValue> = {};
  for (const key of Object.keys(value)) {
    if (key === RESERVED_KEY) {
      throw new StateSerializationError(`${path}.${key}`, 'a reserved key', 'Rename or remove the key.');
    }
    if (value[key] === undefined) continue;
    result[key] = copy(value[key], `${path}.${key}`, inside);
  }
  return result;
}

function rejected(value: unknown, path: string): StateSerializationError {
  ignoreRejections(value);
  return new StateSerializationError(path, kindOf(value));
}

/**
 * Keeps the promises in a rejected value from ending the process when they reject (FIX-05). The code that passed the value on
 * does not await them.
 */
export function ignoreRejections(value: unknown): void {
  const found = new Set([value]);
  for (const each of found) {
    if (each instanceof Promise) each.catch(() => undefined);
    if (!Array.isArray(each) && !isPlainObject(each)) continue;
    // Getters are not called.
    for (const property of Object.values(Object.getOwnPropertyDescriptors(each))) found.add(property.value);
  }
}

/** Returns what to do about a value that JSON lacks; `undefined`: the advice for all of them. */
function cureOf(value: object): string | undefined {
  if (value instanceof Promise) return 'Add `await`.';
  if (value instanceof Date) return 'Store a number or a string: `date.toISOString()`.';
  return value instanceof Map || value instanceof Set ? 'Store an array: `[...value]`.' : undefined;
}

/** Describes the kind of a value without its content: an article and a name. */
export function kindOf(value: unknown): string {
  if (value === undefined) return 'undefined';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (value instanceof Promise) return 'a promise';
  if (typeof value === 'object') {
    // Read from the prototype: a key of the value may be named `constructor`.
    const { constructor } = Object(Object.getPrototypeOf(value)) as {
      readonly constructor?: { readonly name?: unknown };
    };
    const name = constructor?.name;
    return typeof name === 'string' && name !== '' && name !== 'Object' ? `an instance of ${name}` : 'an object';
  }
  return `a ${typeof value}`;
}
