import { type StateAddress } from '../../../state/state.store.js';
import { type DocumentRow } from '../../embedded/rows.js';
import { type DocumentTable } from '../../embedded/tables.js';
import { MemoryDocuments } from '../../memory/memory-contents.js';
import { LoadedTable } from './loaded-table.js';
import { type Query, statement } from './statement.js';
import { SQL } from './tables-sql.js';
import { type Unit } from './unit.js';

export class LoadedDocuments extends LoadedTable<DocumentRow, StateAddress> implements DocumentTable {
  constructor(
    unit: Unit,
    protected override readonly rows = new MemoryDocuments(unit.journal),
  ) {
    super(unit, SQL.document, rows, { lockOf: ({ sessionId }) => ({ session: sessionId }), rowLock: true });
  }

  override get(address: StateAddress): DocumentRow | undefined {
    const { unit } = this;
    const row = this.rows.get(address);
    if (row || unit.writes) return super.get(address);
    // Whether it has expired is asked next.
    unit.recall(this.factOf(address), () => ({ queries: [this.byKey(address), unit.clock()] }));
    return undefined;
  }

  /** Deletes at once, inside the transaction: that is the only way to know how many there are without reading them. */
  deleteExpired(now: number, limit: number): number {
    return this.unit.recall<number>('expired documents', () => {
      const take: Query['take'] = ({ affected }) => {
        this.unit.hasWritten ||= affected > 0;
        this.unit.learn('expired documents', affected);
      };
      const expired = 'DELETE FROM {document} WHERE expires_at <= ? ORDER BY expires_at LIMIT ?';
      return { queries: [{ ...statement(expired, now, limit), take }] };
    });
  }

  removed(sessionId: string): void {
    this.drop(this.rows.ofSession(sessionId));
  }
}
