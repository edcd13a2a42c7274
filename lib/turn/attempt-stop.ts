import { TurnTimeoutError } from '../ledger/turn.errors.js';
import { type CancelMode } from '../ledger/turn.js';
import { renewEveryMs } from './turn-lease.js';
import { type TurnSettings } from './turn.settings.js';
import { type StopReason, TurnStoppedError } from './turn-stopped.error.js';

/** The reason to stop an attempt before its handler returned. */
export type Stop =
  | { readonly why: 'cancelled'; readonly mode: CancelMode }
  | { readonly why: 'shutdown' }
  | { readonly why: 'lost'; readonly error: unknown };

/** How long a handler may go on after a stop before `onLate` is called. */
const LATE_MS = 5000;

/** Stops the handler of an attempt on request, or when its time limit is exceeded. */
export class AttemptStop {
  private readonly controller = new AbortController();
  private requested: Stop | null = null;
  /** Rejects the wait for the handler, so that a handler which ignores its signal does not block. */
  private reject: (reason: Error) => void = () => {};
  private limitAt = Infinity;
  private timer: NodeJS.Timeout | undefined;
  private over = false;
  private isHandlerRunning = false;
  private lateTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly turnId: string,
    private readonly settings: Pick<TurnSettings, 'leaseMs' | 'timeoutMs'>,
    /** Called when the time limit is exceeded, before the handler is stopped. */
    private readonly onLimit: (error: TurnTimeoutError) => void,
    /** Called once if the handler still runs some seconds after a stop. */
    private readonly onLate: (afterMs: number) => void,
  ) {}

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** The first request, if there was one. */
  get request(): Stop | null {
    return this.requested;
  }

  get isOver(): boolean {
    return this.over;
  }

  /** Starts the time limit. */
  start(): void {
    this.limitAt = performance.now() + (this.settings.timeoutMs ?? Infinity);
    this.watchLimit();
  }

  /**
   * Sets the timer of the limit when it is near, because most attempts end long before. Call it every {@link
   * renewEveryMs}.
   */
  watchLimit(): void {
    const leftMs = this.limitAt - performance.now();
    if (this.timer || this.over || leftMs > renewEveryMs(this.settings)) return;
    const error = new TurnTimeoutError(this.turnId, this.settings.timeoutMs ?? 0);
    this.timer = setTimeout(() => {
      this.onLimit(error);
      this.interrupt(error);
    }, leftMs);
  }

  /**
   * Runs the handler until it returns or is stopped.
   * @param done is called as soon as the handler has returned or thrown
   * @throws what the handler throws, or the reason of the stop
   */
  run<T>(handler: () => Promise<T>, done: () => void): Promise<T> {
    return new Promise((resolve, reject) => {
      this.reject = reject;
      if (this.requested) throw new TurnStoppedError(this.requested.why);
      const ended = (): void => {
        this.isHandlerRunning = false;
        clearTimeout(this.lateTimer);
        done();
      };
      this.isHandlerRunning = true;
      // Two callbacks instead of `finally`, which would create three more promises per turn.
      handler().then(
        (result) => {
          ended();
          resolve(result);
        },
        (error: Error) => {
          ended();
          reject(error);
        },
      );
    });
  }

  /** Records the request to stop. @returns false if the handler has ended, or a stop was requested before */
  ask(stop: Stop): boolean {
    if (this.over || this.requested) return false;
    this.requested = stop;
    return true;
  }

  /** Rejects {@link run} and aborts the signal. */
  interrupt(reason: Error): void {
    this.controller.abort(reason);
    this.reject(reason);
    if (!this.isHandlerRunning || this.lateTimer) return;
    this.lateTimer = setTimeout(() => this.onLate(LATE_MS), LATE_MS).unref();
  }

  /** Aborts work that the handler left running. */
  abandon(why: StopReason): void {
    this.controller.abort(new TurnStoppedError(why));
  }

  /** Marks the handler as ended: from now on it cannot be stopped. */
  end(): void {
    this.over = true;
    clearTimeout(this.timer);
  }
}
