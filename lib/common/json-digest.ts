import { type JsonValue, toJson } from './json.js';
import { sha256 } from './sha-256.js';

/**
 * The SHA-256 of a JSON value, independent of the order of keys; 64 hexadecimal digits.
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
  // A list: an object would put keys that look like numbers first.
  return { object: entries.map(([key, item]) => [key, sorted(item)]) };
}
