import { type LeaseRow } from './rows.js';
import { type Table } from './tables.js';

/** The name of the row that stores the version of the last created document. It is not a lease; no lease has this name. */
const VERSIONS = '';

/**
 * Returns the first version of a new document: the clock in microseconds. The clock has milliseconds, so the first version of the last
 * document that any process created is stored. The next one is at least 1,000 higher, which is more than the writes to a document within a
 * millisecond.
 */
export function firstVersion(leases: Table<LeaseRow, string>, now: number): number {
  const last = leases.get(VERSIONS);
  const fence = Math.max((last?.fence ?? 0) + 1000, now * 1000);
  if (last) leases.update(VERSIONS, { fence });
  else leases.insert({ name: VERSIONS, holder: '', fence, expiresAt: 0 });
  return fence;
}
