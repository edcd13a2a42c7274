import { randomFillSync } from 'node:crypto';
import { problemOf } from './input-problem.js';
import { InvalidInputError } from './sessions.error.js';

/** Makes ids of sessions, turns and messages. At least 128 bits of them must be unpredictable (NST-17). */
export type IdGenerator = () => string;

const BYTES = 16;
/** Asking for few bytes costs as much as asking for many. */
const pool = Buffer.alloc(256 * BYTES);
let used = pool.length;

/** 128 bits from the operating system's CSPRNG, as 32 hexadecimal digits. */
export const mintId: IdGenerator = () => {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += BYTES;
  return pool.toString('hex', used - BYTES, used);
};

/** What a session or turn id may look like: it ends up in keys, queries and URLs of every backend. */
const ID = /^[A-Za-z0-9][A-Za-z0-9._:@/+=~-]{0,199}$/;

export const ID_RULE =
  'must be a text of 1 to 200 letters, digits or . _ : @ / + = ~ - that begins with a letter or digit.';

/**
 * Checks an id that came from outside before it reaches a key or a query (NST-17).
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
 * Checks an opaque name that the application chose: a user, a workspace, a surface, an idempotency key.
 * @throws InvalidInputError for an empty or overlong one, and for text that stores would not give back unchanged
 */
export function assertName(value: unknown, path: string): asserts value is string {
  if (!isName(value)) throw new InvalidInputError(path, problemOf(NAME_RULE, value));
}

export const NAME_RULE = 'must be a text of 1 to 256 characters without control characters or lone surrogates.';

/** Control characters, and halves of surrogate pairs: stores and their drivers do not all give them back unchanged. */
const UNSAFE = /[\p{Cc}\p{Cs}]/u;

export function isName(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= 256 && !UNSAFE.test(value);
}
