import { createHash } from 'node:crypto';

/** Returns the chain after one more turn. Equal chains have the same turns in the same order. */
export function link(chain: string, turnId: string): string {
  return createHash('sha256').update(`${chain} ${turnId}`).digest('hex').slice(0, 16);
}
