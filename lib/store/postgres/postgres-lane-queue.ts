import { type Deadline } from '../../common/deadline.js';
import { type FunctionCall } from './postgres-database.js';
import { asStoreError } from './postgres-errors.js';

/** The share of its time that a call may lose when it joins the statement of an older call. */
const MAX_LOSS = 0.1;

/** A call of a function that works in one session's lane. */
export interface LaneCall extends FunctionCall {
  readonly sessionId: string;
  readonly deadline: Deadline;
  /** Runs work that is sent for this call alone in the context of its request. */
  readonly asCaller: <T>(work: () => T) => T;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** A queue of calls to send. A call that times out in the queue is rejected; nothing was written. */
export class PostgresLaneQueue {
  /** The waiting calls. The oldest is first and times out first. */
  private calls: LaneCall[] = [];
  /** The timer for the call that was oldest when it was set. It does not keep the process alive. */
  private timer: NodeJS.Timeout | null = null;

  get length(): number {
    return this.calls.length;
  }

  add(call: LaneCall): void {
    this.calls.push(call);
  }

  /**
   * Takes the calls for one statement: the oldest calls of sessions that are not busy, with about the same time left.
   * @param most the maximum number of calls
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

  /** Rejects calls that time out, until the queue is empty. */
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
