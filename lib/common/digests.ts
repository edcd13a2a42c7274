import { hash } from 'node:crypto';
import { type JsonValue, toJson } from './json.js';

/** Returns the SHA-256 as 64 hexadecimal digits. */
export function sha256(text: string): string {
  return hash('sha256', text);
}

/**
 * Returns the SHA-256 of a JSON value, independent of the order of keys, as 64 hexadecimal digits.
 * @param path names the value in errors
 * @throws StateSerializationError
 */
export function jsonDigest(value: unknown, path: string): string {
  return sha256(JSON.stringify(sorted(toJson(value, path))));
}

function sorted(value: JsonValue): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  // A list, because an object would move integer-like keys to the front.
  return { object: entries.map(([key, item]) => [key, sorted(item)]) };
}

/** Returns a one-way hash of an id for logs (NST-22). */
export function hashed(id: string): string {
  return `#${sha256(id).slice(0, 12)}`;
}
