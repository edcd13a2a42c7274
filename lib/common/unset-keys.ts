import { Must } from './check-input.js';
import { InvalidInputError } from './sessions.error.js';

const MAX_KEYS = 1000;

/** The keys that a patch removes (FIX-47). */
export const MustBeKeys = (): PropertyDecorator => Must(areKeys, `must be an array of at most ${MAX_KEYS} strings.`);

/** @throws InvalidInputError if the patch also sets a key */
export function assertNotSet(unset: readonly string[], patch: object, path: string): void {
  if (!unset.some((key) => Object.hasOwn(patch, key))) return;
  throw new InvalidInputError(path, 'must not contain keys that the patch sets.');
}

function areKeys(value: unknown): boolean {
  // Spreading fills the holes of a sparse array.
  return Array.isArray(value) && value.length <= MAX_KEYS && [...(value as unknown[])].every(isString);
}

function isString(value: unknown): boolean {
  return typeof value === 'string';
}
