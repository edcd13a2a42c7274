import { type Deadline } from '../../common/deadline.js';
import { type FunctionCall } from './postgres-database.js';
import { asStoreError } from './postgres-errors.js';

/** Of an operation's time: how much less a call may get because it shares the statement of an older one. */
const MAX_LOSS = 0.1;

/** A call of a function that works in one session's lane. */
export interface LaneCall extends FunctionCall {
  readonly sessionId: string;
  readonly deadline: Deadline;
  /** Runs what is sent for it alone as part of the request that it belongs to. */
  readonly asCaller: <T>(work: () => T) => T;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Calls that wait to be sent. One whose time is over before that is rejected: certainly nothing was written. */
export class PostgresLaneQueue {
  /** The oldest first, whose time is over first. */
  private calls: LaneCall[] = [];
  /** For the oldest one that there was when it was set. It keeps no process alive: what a call waits for does. */
  private timer: NodeJS.Timeout | null = null;

  get length(): number {
    return this.calls.length;
  }

  add(call: LaneCall): void {
    this.calls.push(call);
  }

  /**
   * What one statement can do: the oldest calls of sessions that are not busy, with about the same time left.
   * @param most how many
   */
  take(most: number, busy: ReadonlySet<string>): LaneCall[] {
    this.rejectLate();
    const taken: LaneCall[] = [];
    const rest: LaneCall[] = [];
    for (const call of this.calls) {
      const [oldest = call] = taken;
      const fits = taken.length < most && call.deadline.shareAfter(oldest.deadline) <= MAX_LOSS;
      (fits && !busy.has(call.sessionId) ? taken : rest).push(call);
    }
    this.calls = rest;
    return taken;
  }

  /** Sees to those that are in it now, until none is. */
  watch(): void {
    if (this.calls.length === 0 || this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = null;
      this.rejectLate();
      this.watch();
    }, this.calls[0].deadline.leftMs).unref();
  }

  private rejectLate(): void {
    while (this.calls.length > 0 && this.calls[0].deadline.isOver) {
      const [{ deadline, reject }] = this.calls.splice(0, 1);
      reject(asStoreError(deadline.error, false));
    }
  }
}
