import { AsyncLocalStorage } from 'node:async_hooks';
import { outsideRequests } from '../../common/outside-requests.js';
import { type PostgresDatabase } from './postgres-database.js';
import { isLockTimeout, mayGoWellAlone } from './postgres-errors.js';
import { type LaneCall, PostgresLaneQueue } from './postgres-lane-queue.js';

/** Statements at once: while PostgreSQL works on one, this process reads and writes another. */
const MAX_UNDER_WAY = 2;
/** Calls of one statement at most: they hold their locks until its end. */
const MAX_TOGETHER = 32;
/** Of the time that is left: a lane that somebody else holds for longer keeps no others waiting. */
const LOCK_SHARE = 0.05;

/** The json of a function that works in one session's lane. */
export interface LaneArgs extends Readonly<Record<string, unknown>> {
  readonly session_id: string;
}

/**
 * Calls of functions that work in one session's lane. Those of one turn of the event loop, and those that come while others
 * are under way, share a statement and its commit: in the order of their sessions, in which every process takes its locks. What
 * a function refuses is its result, so it is its own caller's only. When PostgreSQL refuses a statement as a whole, each of its
 * calls is made alone.
 */
export class PostgresLaneCalls {
  private readonly waiting = new PostgresLaneQueue();
  private underWay = 0;
  /** Sessions of what was sent: another statement would wait for their locks, and calls of a session keep their order. */
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

  /** Lets the rest of this turn of the event loop join. What is sent for several belongs to none of their requests. */
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
      // Each statement that may be sent now gets its share.
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

  /** @returns whether they are to be sent again, each alone */
  private async sendTogether(calls: readonly LaneCall[]): Promise<boolean> {
    const [{ deadline, asCaller }] = calls;
    const sorted = calls.toSorted((a, b) => (a.sessionId < b.sessionId ? -1 : a.sessionId > b.sessionId ? 1 : 0));
    const sent = (): Promise<unknown[]> => this.db.callAll(sorted, deadline, LOCK_SHARE);
    try {
      const results = await (calls.length === 1 ? asCaller(sent) : sent());
      sorted.forEach(({ resolve }, at) => resolve(results[at]));
      return false;
    } catch (error) {
      const again = calls.length === 1 ? isLockTimeout(error) : mayGoWellAlone(error);
      if (!again) for (const { reject } of calls) reject(error);
      return again;
    }
  }

  /** Each of one lane's calls, which only the lane itself waits behind: that may be locked for long. */
  private async sendAlone(lane: string, calls: readonly LaneCall[]): Promise<void> {
    for (const call of calls.filter(({ sessionId }) => sessionId === lane)) {
      const sent = call.asCaller(() => this.db.callAll([call], call.deadline));
      await sent.then(([result]) => call.resolve(result), call.reject);
    }
    this.busy.delete(lane);
    this.gather();
  }
}
