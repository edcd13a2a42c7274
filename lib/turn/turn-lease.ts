import { setTimeout as delay } from 'node:timers/promises';
import { instant, type Instant, msSince } from '../common/instant.js';
import { StoreRejectedError, StoreUnavailableError } from '../common/sessions.error.js';
import { TurnFencedError } from '../ledger/turn.errors.js';
import { type TurnEventLog } from '../ledger/turn-event-log.js';
import { type TurnHold, type TurnLedger } from '../ledger/turn.store.js';
import { type CancelMode } from '../ledger/turn.js';
import { type TurnSettings } from './turn.settings.js';

/** The pause before the second try of a store call. */
const FIRST_PAUSE_MS = 20;

/**
 * The longest pause between two tries of a store call. It must be short, so that a call can succeed before the lease
 * ends.
 */
const MAX_PAUSE_MS = 250;

/** How often a call is repeated after errors that the store's adapter does not know. */
const MAX_UNKNOWN = 8;

/** Returns how often the lease of a running attempt is renewed. */
export function renewEveryMs({ leaseMs }: Pick<TurnSettings, 'leaseMs'>): number {
  return leaseMs / 3;
}

/** Receives the results of renewals. */
export interface LeaseListener {
  cancelled(mode: CancelMode): void;
  lost(error: unknown): void;
  /** Receives the error of every call that failed. */
  failed(error: unknown): void;
  /** Called before a call is repeated. @param since when it was made first, by `performance.now()` */
  repeats(operation: string, since: number, error: unknown): void;
  /** Called when a repeated call has succeeded. */
  recovered(): void;
}

/** The lease of a running attempt, by the clocks of this process. It has ended when either clock says so (FIX-90). */
export class TurnLease {
  /** When the latest claim or renewal that succeeded was sent. */
  private begun: Instant;
  /** When calls are no longer repeated, although the lease lasts. */
  private limitAt = Infinity;
  /** Shared by all calls that found the lease ended. */
  private renewing: Promise<void> | null = null;

  /** @param claimSentAt when the claim was sent: the lease began then or later */
  constructor(
    private readonly hold: TurnHold,
    private readonly ledger: TurnLedger,
    private readonly leaseMs: number,
    claimSentAt: Instant,
    private readonly listener: LeaseListener,
  ) {
    this.begun = claimSentAt;
  }

  get hasEnded(): boolean {
    return msSince(this.begun) >= this.leaseMs;
  }

  /** True if the lease lasts by the monotonic clock, which may have stood still. The fence protects the writes. */
  private get mayLast(): boolean {
    return performance.now() - this.begun.monotonic < this.leaseMs;
  }

  /** Limits the repetition of calls from now on. The first limit counts. */
  limit(ms: number): void {
    this.limitAt = Math.min(this.limitAt, performance.now() + ms);
  }

  /** @returns false if the call failed, and a later one may succeed */
  async renew(): Promise<boolean> {
    const sentAt = instant();
    try {
      const { cancelMode } = await this.ledger.renew(this.hold, this.leaseMs);
      this.begun = sentAt;
      if (cancelMode) this.listener.cancelled(cancelMode);
      return true;
    } catch (error) {
      this.listener.failed(error);
      // A wall clock that was set forward does not end the lease: the next renewal may succeed.
      const isLost = TurnFencedError.isInstance(error) || !this.mayLast;
      if (isLost) this.listener.lost(error);
      return isLost;
    }
  }

  /**
   * Renews a lease that has ended: this machine may have slept while another worker took the turn (FIX-07). Its network may
   * return later than the process, so the call is repeated until the lease is renewed or lost.
   * @returns undefined while the lease lasts
   */
  renewIfEnded(): Promise<void> | undefined {
    if (!this.hasEnded) return undefined;
    this.renewing ??= this.renewUntilDecided().finally(() => (this.renewing = null));
    return this.renewing;
  }

  /**
   * Repeats a store call while the store is unavailable, until the lease ends or the {@link limit} (FIX-61). An error that the
   * store's adapter does not know is repeated {@link MAX_UNKNOWN} times.
   * @param waitsForOperator whether to repeat the call also while the store lacks a table, a function or a privilege
   * @throws StoreRejectedError, which names the operation
   */
  async retrying<T>(
    operation: keyof TurnLedger | keyof TurnEventLog,
    call: () => Promise<T>,
    waitsForOperator = false,
  ): Promise<T> {
    let unknown = 0;
    let isRepeated = false;
    const since = performance.now();
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = nextPause(pauseMs)) {
      try {
        const result = await call();
        if (isRepeated) this.listener.recovered();
        return result;
      } catch (error) {
        if (StoreRejectedError.isInstance(error)) throw rejected(operation, error);
        if (!StoreUnavailableError.isInstance(error)) throw error;
        this.listener.failed(error);
        if (error.reason === 'deployment' && !waitsForOperator) throw unstorable(operation, error);
        if (error.reason === 'unknown' && (unknown += 1) > MAX_UNKNOWN) throw unexpected(operation, error);
        const retryAt = performance.now() + pauseMs;
        if (retryAt >= Math.min(this.begun.monotonic + this.leaseMs, this.limitAt)) throw error;
        isRepeated = true;
        this.listener.repeats(operation, since, error);
        await delay(pauseMs);
      }
    }
  }

  private async renewUntilDecided(): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; !(await this.renew()); pauseMs = nextPause(pauseMs)) await delay(pauseMs);
  }
}

function nextPause(pauseMs: number): number {
  return Math.min(pauseMs * 2, MAX_PAUSE_MS);
}

function rejected(operation: string, { problem, cure, cause }: StoreRejectedError): StoreRejectedError {
  return new StoreRejectedError(problem, cure, { cause, operation });
}

function unstorable(operation: string, error: StoreUnavailableError): StoreRejectedError {
  const cure = 'The worker claims no turns until an operator has added what is missing.';
  return new StoreRejectedError(error.message, cure, { cause: error.cause, operation });
}

function unexpected(operation: string, error: StoreUnavailableError): StoreRejectedError {
  const cure = `The store gave the same answer ${MAX_UNKNOWN + 1} times. Look the code up in the manual of the server.`;
  return new StoreRejectedError(error.message, cure, { cause: error.cause, operation });
}
