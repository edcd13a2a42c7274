import { randomFillSync } from 'node:crypto';
import { InvalidInputError } from './sessions.error.js';

/** Generates ids of sessions, turns and messages. At least 128 bits must be unpredictable (NST-17). */
export type IdGenerator = () => string;

const BYTES = 16;
/** Random bytes are read in bulk, because a small read costs as much as a large one. */
const pool = Buffer.alloc(256 * BYTES);
let used = pool.length;

/** Returns 128 bits from the operating system's CSPRNG as 32 hexadecimal digits. */
export const mintId: IdGenerator = () => {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += BYTES;
  return pool.toString('hex', used - BYTES, used);
};

/** The format of session and turn ids, which is safe in keys, queries and URLs of every backend. */
const ID = /^[A-Za-z0-9][A-Za-z0-9._:@/+=~-]{0,199}$/;

export const ID_RULE =
  'must be a string of 1 to 200 letters, digits or . _ : @ / + = ~ - that begins with a letter or digit.';

/**
 * Validates an external id before it is used in a key or query (NST-17).
 * @throws InvalidInputError
 */
export function assertId(value: unknown, path: string): asserts value is string {
  if (!isId(value)) {
    throw new InvalidInputError(path, problemOf(ID_RULE, value));
  }
}

export function isId(value: unknown): value is string {
  return typeof value === 'string' && ID.test(value);
}

/**
 * Validates an opaque name from the application: a user, a workspace, a surface or an idempotency key.
 * @throws InvalidInputError if it is empty, too long, or contains characters that stores may change
 */
export function assertName(value: unknown, path: string): asserts value is string {
  if (!isName(value)) throw new InvalidInputError(path, problemOf(NAME_RULE, value));
}

export const NAME_RULE = 'must be a string of 1 to 256 characters without control characters or lone surrogates.';

/** Control characters and lone surrogates, which some stores and drivers change. */
const UNSAFE = /[\p{Cc}\p{Cs}]/u;

export function isName(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= 256 && !UNSAFE.test(value);
}

/** Returns the rule, with the received value if it is `undefined` or `null`. */
export function problemOf(rule: string, value: unknown): string {
  return value === undefined || value === null ? `${rule} Received: ${value}.` : rule;
}
