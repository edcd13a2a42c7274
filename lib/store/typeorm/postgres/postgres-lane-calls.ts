import { type Deadline } from '../../../common/deadline.js';
import { outsideRequests } from '../../../common/outside-requests.js';
import { StoreUnavailableError } from '../../../common/sessions.error.js';
import { type FunctionCall, type PostgresDatabase } from './postgres-database.js';
import { isLockTimeout } from './postgres-errors.js';

/** Statements at once: while PostgreSQL works on one, this process reads and writes another. */
const MAX_UNDER_WAY = 2;
/** Calls of one statement at most: they hold their locks until its end. */
const MAX_TOGETHER = 32;
/** Of an operation's time: a lane that somebody else holds for longer keeps no others waiting. */
const LOCK_SHARE = 0.05;

/** The json of a function that works in one session's lane. */
export interface LaneArgs extends Readonly<Record<string, unknown>> {
  readonly session_id: string;
}

interface LaneCall extends FunctionCall {
  readonly sessionId: string;
  readonly deadline: Deadline;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Calls of functions that work in one session's lane. Those of one turn of the event loop, and those that come while others
 * are under way, share a statement and its commit: in the order of their sessions, in which every process takes its locks. What
 * a function refuses is its result, so it is its own caller's only. When a statement fails as a whole and has written
 * nothing, each of its calls is made alone.
 */
export class PostgresLaneCalls {
  private waiting: LaneCall[] = [];
  private underWay = 0;
  /** Sessions of what is under way: another statement would wait for their locks, and calls of a session keep their order. */
  private readonly busy = new Set<string>();
  private gathering = false;
  private readonly outsideRequests = outsideRequests();

  constructor(private readonly db: PostgresDatabase) {}

  /** @throws StoreUnavailableError */
  call<T>(operation: string, args: LaneArgs): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.waiting.push({
        sessionId: args.session_id,
        operation,
        args: JSON.stringify(args),
        deadline: this.db.deadline(),
        resolve: resolve as (result: unknown) => void,
        reject,
      });
      this.gather();
    });
  }

  /** Lets the rest of this turn of the event loop join. */
  private gather(): void {
    if (this.gathering) return;
    this.gathering = true;
    setImmediate(() => {
      this.gathering = false;
      this.sendWaiting();
    });
  }

  private sendWaiting(): void {
    while (this.underWay < MAX_UNDER_WAY) {
      const calls = this.take();
      if (calls.length === 0) return;
      this.underWay += 1;
      for (const { sessionId } of calls) this.busy.add(sessionId);
      // What is sent for several belongs to none of their requests.
      const sent = calls.length === 1 ? this.send(calls) : this.outsideRequests(() => this.send(calls));
      void sent.finally(() => {
        this.underWay -= 1;
        for (const { sessionId } of calls) this.busy.delete(sessionId);
        this.outsideRequests(() => this.sendWaiting());
      });
    }
  }

  /** What the next statement is to do, so that each of those that may be sent now gets its share. */
  private take(): LaneCall[] {
    const share = Math.min(MAX_TOGETHER, Math.ceil(this.waiting.length / (MAX_UNDER_WAY - this.underWay)));
    const calls: LaneCall[] = [];
    const rest: LaneCall[] = [];
    for (const call of this.waiting) {
      const isNext = calls.length < share && !this.busy.has(call.sessionId);
      (isNext ? calls : rest).push(call);
    }
    this.waiting = rest;
    return calls;
  }

  /** @param calls the oldest first */
  private async send(calls: readonly LaneCall[]): Promise<void> {
    const sorted = calls.toSorted((a, b) => (a.sessionId < b.sessionId ? -1 : a.sessionId > b.sessionId ? 1 : 0));
    try {
      const results = await this.db.callAll(sorted, calls[0].deadline, LOCK_SHARE);
      sorted.forEach(({ resolve }, at) => resolve(results[at]));
    } catch (error) {
      const isUnwritten = !(error instanceof StoreUnavailableError && error.maybeApplied);
      if (isUnwritten && (calls.length > 1 || isLockTimeout(error)))
        for (const call of sorted) void this.sendAlone(call);
      else for (const { reject } of calls) reject(error);
    }
  }

  /** Nobody waits behind it: its lane may be locked for long. */
  private async sendAlone({ deadline, resolve, reject, ...call }: LaneCall): Promise<void> {
    await this.db.callAll([call], deadline).then(([result]) => resolve(result), reject);
  }
}
