import { createHash } from 'node:crypto';

/** What a chain becomes with one more turn: equal chains have had the same turns in the same order. */
export function link(chain: string, turnId: string): string {
  return createHash('sha256').update(`${chain} ${turnId}`).digest('hex').slice(0, 16);
}
