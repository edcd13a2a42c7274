import { type LaneRow } from '../../embedded/rows.js';
import { type LaneTable } from '../../embedded/tables.js';
import { MemoryLanes } from '../../memory/memory-turns.js';
import { LoadedTable } from './loaded-table.js';
import { type Query } from './statement.js';
import { SQL } from './tables-sql.js';
import { type Unit } from './unit.js';

export class LoadedLanes extends LoadedTable<LaneRow, string> implements LaneTable {
  constructor(
    unit: Unit,
    protected override readonly rows = new MemoryLanes(unit.journal),
  ) {
    super(unit, SQL.lane, rows, { lockOf: (session) => ({ session }), bundled: true });
  }

  due(now: number, limit: number): LaneRow[] {
    const found = this.unit.recall<string[]>('due', () => {
      const take: Query['take'] = ({ rows }) => {
        const lanes = rows as unknown as LaneRow[];
        this.put(lanes);
        this.unit.learn(
          'due',
          lanes.map(({ sessionId }) => sessionId),
        );
      };
      const due = `WHERE attention_at <= ? ORDER BY attention_at LIMIT ? ${this.unit.skipLocked}`;
      return { queries: [{ ...SQL.lane.select(due, now, limit), take }] };
    });
    return found.flatMap((sessionId) => this.rows.get(sessionId) ?? []);
  }

  removed(sessionId: string): void {
    const row = this.rows.get(sessionId);
    if (row) this.drop([row]);
  }
}
