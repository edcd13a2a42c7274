import { sha256 } from './sha-256.js';

/** An id as it may stand in a log: the same id gives the same text, which does not give the id (NST-22). */
export function hashed(id: string): string {
  return `#${sha256(id).slice(0, 12)}`;
}
