import { type TurnEvent } from '../../ledger/turn-event.js';
import { type TurnEventBatch, type TurnEventLog } from '../../ledger/turn-event-log.js';
import { type TurnHold } from '../../ledger/turn.store.js';
import { type Notifications, subscribeToEvents } from '../core/notifications.js';
import { eventsOf } from '../core/turn-events.js';
import { type RedisDatabase } from './redis-database.js';
import { SCRIPTS } from './redis-scripts.js';

/** Stores turn events in Redis, with a stream per turn. */
export class RedisTurnEvents implements TurnEventLog {
  constructor(
    private readonly db: RedisDatabase,
    private readonly notifications: Notifications,
  ) {}

  async append(hold: TurnHold, { number, events, restart }: TurnEventBatch, ttlMs: number): Promise<number> {
    const [last] = await this.db.run<[number]>(
      SCRIPTS.appendEvents,
      hold.sessionId,
      hold.turnId,
      hold.fence,
      number,
      events.length,
      JSON.stringify(events),
      JSON.stringify(restart),
      ttlMs,
    );
    return last;
  }

  async read(turnId: string, after: number, limit: number): Promise<TurnEvent[]> {
    const [batches] = await this.db.run<[string[]]>(SCRIPTS.readEvents, turnId, after, after + limit);
    const rows = Array.from({ length: batches.length / 2 }, (_, at) => ({
      lastOffset: Number(batches[2 * at]),
      events: batches[2 * at + 1],
    }));
    return eventsOf(rows, after);
  }

  async last(turnId: string): Promise<number> {
    const [last] = await this.db.run<[number]>(SCRIPTS.lastEvent, turnId);
    return last;
  }

  subscribe(turnId: string, listener: (last: number | null) => void): () => void {
    return subscribeToEvents(this.notifications, turnId, listener);
  }

  /** Does nothing: Redis expires the streams itself. */
  async deleteExpired(): Promise<number> {
    return 0;
  }
}
