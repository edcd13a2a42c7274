import { AsyncLocalStorage } from 'node:async_hooks';
import { outsideRequests } from '../../common/background-work.js';
import { type PostgresDatabase } from './postgres-database.js';
import { isLockTimeout, maySucceedAlone } from './postgres-errors.js';
import { type LaneCall, PostgresLaneQueue } from './postgres-lane-queue.js';

/** The number of concurrent statements. While PostgreSQL runs one, this process prepares or reads the other. */
const MAX_UNDER_WAY = 2;
/** The maximum number of calls per statement. They hold their locks until it ends. */
const MAX_TOGETHER = 32;
/** The share of the remaining time to wait for a lock, so that a locked lane does not delay the other lanes. */
const LOCK_SHARE = 0.05;

/** The argument of a function that works in one session's lane. */
export interface LaneArgs extends Readonly<Record<string, unknown>> {
  readonly session_id: string;
}

/**
 * Batches calls of functions that work in one session's lane. Calls of one event loop tick, and calls that arrive while others
 * run, share a statement and its commit. They are sorted by session, the order in which every process takes its locks.
 * A refusal is the result of its own call and does not affect the others. If the whole statement fails, each call is sent
 * alone.
 */
export class PostgresLaneCalls {
  private readonly waiting = new PostgresLaneQueue();
  private underWay = 0;
  /** The sessions of running calls. Another statement would wait for their locks, and calls of a session keep their order. */
  private readonly busy = new Set<string>();
  private gathering = false;
  private readonly outsideRequests = outsideRequests();

  constructor(private readonly db: PostgresDatabase) {}

  /** @throws StoreUnavailableError */
  call<T>(operation: string, args: LaneArgs): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.waiting.add({
        sessionId: args.session_id,
        operation,
        args: JSON.stringify(args),
        deadline: this.db.deadline(),
        asCaller: AsyncLocalStorage.snapshot(),
        resolve: resolve as (result: unknown) => void,
        reject,
      });
      this.gather();
    });
  }

  /** Lets other calls of this event loop tick join. A shared statement belongs to none of their requests. */
  private gather(): void {
    if (this.gathering) return;
    this.gathering = true;
    this.outsideRequests(() =>
      setImmediate(() => {
        this.gathering = false;
        this.sendWaiting();
      }),
    );
  }

  private sendWaiting(): void {
    while (this.underWay < MAX_UNDER_WAY) {
      // Divides the waiting calls among the statements that can be sent now.
      const share = Math.ceil(this.waiting.length / (MAX_UNDER_WAY - this.underWay));
      const calls = this.waiting.take(Math.min(MAX_TOGETHER, share), this.busy);
      if (calls.length === 0) break;
      void this.send(calls);
    }
    this.waiting.watch();
  }

  /** @param calls the oldest first */
  private async send(calls: readonly LaneCall[]): Promise<void> {
    this.underWay += 1;
    for (const { sessionId } of calls) this.busy.add(sessionId);
    const isRefused = await this.sendTogether(calls);
    this.underWay -= 1;
    for (const lane of new Set(calls.map(({ sessionId }) => sessionId))) {
      if (isRefused) void this.sendAlone(lane, calls);
      else this.busy.delete(lane);
    }
    this.sendWaiting();
  }

  /** @returns whether to send each call again alone */
  private async sendTogether(calls: readonly LaneCall[]): Promise<boolean> {
    const [{ deadline, asCaller }] = calls;
    const sorted = calls.toSorted((a, b) => (a.sessionId < b.sessionId ? -1 : a.sessionId > b.sessionId ? 1 : 0));
    const sent = (): Promise<unknown[]> => this.db.callAll(sorted, deadline, LOCK_SHARE);
    try {
      const results = await (calls.length === 1 ? asCaller(sent) : sent());
      sorted.forEach(({ resolve }, at) => resolve(results[at]));
      return false;
    } catch (error) {
      const again = calls.length === 1 ? isLockTimeout(error) : maySucceedAlone(error);
      if (!again) for (const { reject } of calls) reject(error);
      return again;
    }
  }

  /** Sends the calls of one lane one by one. A lane that stays locked then delays only its own calls. */
  private async sendAlone(lane: string, calls: readonly LaneCall[]): Promise<void> {
    for (const call of calls.filter(({ sessionId }) => sessionId === lane)) {
      const sent = call.asCaller(() => this.db.callAll([call], call.deadline));
      await sent.then(([result]) => call.resolve(result), call.reject);
    }
    this.busy.delete(lane);
    this.gather();
  }
}
