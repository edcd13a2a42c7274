import { type TurnEvent } from '../../ledger/turn-event.js';
import { type TurnEventBatch, type TurnEventLog } from '../../ledger/turn-event-log.js';
import { type TurnHold } from '../../ledger/turn.store.js';
import { type Notifications, subscribeToEvents } from '../core/notifications.js';
import { type TurnEventRow } from '../core/rows.js';
import { eventsOf } from '../core/turn-events.js';
import { type PostgresDatabase } from './postgres-database.js';
import { type PostgresLaneCalls } from './postgres-lane-calls.js';
import { granted } from './postgres-refusals.js';
import { type SqlRow, toRow } from './postgres-rows.js';

/** Stores turn events in PostgreSQL, with one row per batch. */
export class PostgresTurnEvents implements TurnEventLog {
  constructor(
    private readonly db: PostgresDatabase,
    private readonly laneCalls: PostgresLaneCalls,
    private readonly notifications: Notifications,
  ) {}

  async append(hold: TurnHold, { number, events, restart }: TurnEventBatch, ttlMs: number): Promise<number> {
    const args = {
      session_id: hold.sessionId,
      turn_id: hold.turnId,
      fence: hold.fence,
      batch: number,
      size: events.length,
      events: JSON.stringify(events),
      restart: JSON.stringify(restart),
      ttl_ms: ttlMs,
    };
    return granted(await this.laneCalls.call<number>('append_events_v1', args));
  }

  async read(turnId: string, after: number, limit: number): Promise<TurnEvent[]> {
    const rows = await this.db.query<{ row: SqlRow }>(
      `SELECT row_to_json(batch) AS row FROM (
         SELECT last_offset, events FROM {turn_event}
         WHERE turn_id = $1 AND last_offset > $2 AND last_offset <=
           COALESCE((SELECT min(last_offset) FROM {turn_event} WHERE turn_id = $1 AND last_offset >= $3), $4)
         ORDER BY last_offset
       ) AS batch`,
      [turnId, after, after + limit, Number.MAX_SAFE_INTEGER],
    );
    const batches = rows.map(({ row }) => toRow<Pick<TurnEventRow, 'lastOffset' | 'events'>>(row));
    return eventsOf(batches, after);
  }

  async last(turnId: string): Promise<number> {
    const [last] = await this.db.query<{ row: SqlRow } | undefined>(
      `SELECT row_to_json(batch) AS row FROM (
         SELECT last_offset FROM {turn_event} WHERE turn_id = $1 ORDER BY last_offset DESC LIMIT 1
       ) AS batch`,
      [turnId],
    );
    return last ? toRow<Pick<TurnEventRow, 'lastOffset'>>(last.row).lastOffset : 0;
  }

  subscribe(turnId: string, listener: (last: number | null) => void): () => void {
    return subscribeToEvents(this.notifications, turnId, listener);
  }

  deleteExpired(limit: number): Promise<number> {
    return this.db.call('delete_expired_events_v1', { max_turns: limit });
  }
}
