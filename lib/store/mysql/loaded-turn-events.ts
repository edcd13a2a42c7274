import { type TurnEventRow } from '../core/rows.js';
import { type TurnEventTable } from '../core/tables.js';
import { MemoryTurnEvents } from './memory-turns.js';
import { LoadedTable } from './loaded-table.js';
import { type LoadedTurns } from './loaded-turns.js';
import { type Query, type Statement } from './statement.js';
import { SQL } from './tables-sql.js';
import { fact, type Unit } from './unit.js';

type Key = Pick<TurnEventRow, 'turnId' | 'lastOffset'>;

export class LoadedTurnEvents extends LoadedTable<TurnEventRow, Key> implements TurnEventTable {
  constructor(
    unit: Unit,
    turns: LoadedTurns,
    protected override readonly rows = new MemoryTurnEvents(unit.journal),
  ) {
    super(unit, SQL.turn_event, rows, { lockOf: ({ turnId }) => turns.lockOf(turnId) });
  }

  last(turnId: string): TurnEventRow | undefined {
    this.load(fact('last event', turnId), 'WHERE turn_id = ? ORDER BY last_offset DESC LIMIT 1', turnId);
    return this.rows.last(turnId);
  }

  select(turnId: string, after: number, limit: number): TurnEventRow[] {
    this.load(
      fact('events', turnId, after, limit),
      `WHERE turn_id = ? AND last_offset > ? AND last_offset <=
         COALESCE((SELECT MIN(last_offset) FROM {turn_event} WHERE turn_id = ? AND last_offset >= ?), ?)
       ORDER BY last_offset`,
      ...[turnId, after, turnId, after + limit, Number.MAX_SAFE_INTEGER],
    );
    return this.rows.select(turnId, after, limit);
  }

  /** A writer holds the lock of the turn's lane. */
  private load(name: string, ...select: Parameters<typeof SQL.turn_event.select>): void {
    this.unit.recall(name, () => {
      const rows: Statement = SQL.turn_event.select(...select);
      const take: Query['take'] = (answer) => {
        this.put(answer.rows as unknown as TurnEventRow[]);
        this.unit.learn(name);
      };
      return { queries: [{ ...rows, take }] };
    });
  }
}
