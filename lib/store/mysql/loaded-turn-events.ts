import { type TurnEventRow } from '../core/rows.js';
import { type TurnEventTable } from '../core/tables.js';
import { MemoryTurnEvents } from './memory-turns.js';
import { LoadedTable } from './loaded-table.js';
import { type LoadedTurns } from './loaded-turns.js';
import { type Query, statement } from './statement.js';
import { SQL } from './tables-sql.js';
import { fact, type Unit } from './unit.js';

type Key = Pick<TurnEventRow, 'turnId' | 'lastOffset'>;

/** The event batches of turns. A writer holds the lock of the turn's lane. */
export class LoadedTurnEvents extends LoadedTable<TurnEventRow, Key> implements TurnEventTable {
  constructor(
    unit: Unit,
    turns: LoadedTurns,
    protected override readonly rows = new MemoryTurnEvents(unit.journal),
  ) {
    super(unit, SQL.turn_event, rows, { lockOf: ({ turnId }) => turns.lockOf(turnId) });
  }

  last(turnId: string): ReturnType<TurnEventTable['last']> {
    const name = fact('last event', turnId);
    return this.unit.recall<ReturnType<TurnEventTable['last']>>(name, () => {
      const row = statement(
        'SELECT last_offset AS lastOffset, fence, batch FROM {turn_event} WHERE turn_id = ? ORDER BY last_offset DESC LIMIT 1',
        turnId,
      );
      const take: Query['take'] = (answer) => this.unit.learn(name, answer.rows[0]);
      return { queries: [{ ...row, take }] };
    });
  }

  select(turnId: string, after: number, limit: number): TurnEventRow[] {
    const name = fact('events', turnId, after, limit);
    this.unit.recall(name, () => {
      const rows = SQL.turn_event.select(
        `WHERE turn_id = ? AND last_offset > ? AND last_offset <=
         COALESCE((SELECT MIN(last_offset) FROM {turn_event} WHERE turn_id = ? AND last_offset >= ?), ?)
       ORDER BY last_offset`,
        ...[turnId, after, turnId, after + limit, Number.MAX_SAFE_INTEGER],
      );
      const take: Query['take'] = (answer) => {
        this.put(answer.rows as unknown as TurnEventRow[]);
        this.unit.learn(name);
      };
      return { queries: [{ ...rows, take }] };
    });
    return this.rows.select(turnId, after, limit);
  }
}
