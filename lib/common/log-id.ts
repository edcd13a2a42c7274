import { createHash } from 'node:crypto';

/** An id as it may stand in a log: the same id gives the same text, which does not give the id (NST-22). */
export function hashed(id: string): string {
  return `#${createHash('sha256').update(id).digest('hex').slice(0, 12)}`;
}
