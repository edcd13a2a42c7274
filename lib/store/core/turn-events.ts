import { type TurnEventBatch, type TurnEventLog } from '../../ledger/turn-event-log.js';
import { type NewTurnEvent, type TurnEvent } from '../../ledger/turn-event.js';
import { type TurnHold } from '../../ledger/turn.store.js';
import { held } from './lane.js';
import { type TurnEventRow } from './rows.js';
import { type CoreDatabase, type Transaction } from './tables.js';

/** Implements turn events on the tables of a store, with one row per batch. */
export class CoreTurnEvents implements TurnEventLog {
  constructor(private readonly db: CoreDatabase) {}

  append(hold: TurnHold, batch: TurnEventBatch, ttlMs: number): Promise<number> {
    return this.db.write((tx) => appendEvents(tx, hold, batch, ttlMs));
  }

  read(turnId: string, after: number, limit: number): Promise<TurnEvent[]> {
    return this.db.read((tx) => eventsOf(tx.events.select(turnId, after, limit), after));
  }

  last(turnId: string): Promise<number> {
    return this.db.read((tx) => tx.events.last(turnId)?.lastOffset ?? 0);
  }

  deleteExpired(limit: number): Promise<number> {
    return this.db.write((tx) => tx.deleteExpiredEvents(limit));
  }
}

function appendEvents(tx: Transaction, hold: TurnHold, batch: TurnEventBatch, ttlMs: number): number {
  const { turn } = held(tx, hold);
  const last = tx.events.last(turn.id);
  if (last?.fence === hold.fence && last.batch >= batch.number) return last.lastOffset;
  const events = last && last.fence !== hold.fence ? [batch.restart, ...batch.events] : batch.events;
  const lastOffset = (last?.lastOffset ?? 0) + events.length;
  tx.events.insert({
    turnId: turn.id,
    lastOffset,
    fence: hold.fence,
    batch: batch.number,
    events: JSON.stringify(events),
  });
  if (turn.eventTtl !== ttlMs) tx.turns.update(turn.id, { eventTtl: ttlMs });
  return lastOffset;
}

/** Returns the events of the rows after an offset. */
export function eventsOf(rows: readonly Pick<TurnEventRow, 'lastOffset' | 'events'>[], after: number): TurnEvent[] {
  const events = rows.flatMap((row) => {
    const batch = JSON.parse(row.events) as NewTurnEvent[];
    return batch.map(({ type, data }, at): TurnEvent => ({
      offset: row.lastOffset - batch.length + 1 + at,
      type,
      data,
    }));
  });
  const from = events.findIndex(({ offset }) => offset > after);
  return from === -1 ? [] : events.slice(from);
}
