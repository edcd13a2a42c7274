import { setTimeout as delay } from 'node:timers/promises';
import { StoreUnavailableError } from '../common/sessions.error.js';
import { TurnFencedError } from '../ledger/turn.errors.js';
import { type TurnHold, type TurnLedger } from '../ledger/turn.store.js';
import { type CancelMode } from '../ledger/turn.js';
import { type TurnSettings } from './turn.settings.js';

/**
 * The longest pause between two tries of a store call. It must be short, so that a call can succeed before the lease
 * ends.
 */
const MAX_PAUSE_MS = 250;

/** Returns how often the lease of a running attempt is renewed. */
export function renewEveryMs({ leaseMs }: Pick<TurnSettings, 'leaseMs'>): number {
  return leaseMs / 3;
}

/** Receives the results of renewals. */
export interface LeaseListener {
  cancelled(mode: CancelMode): void;
  lost(error: unknown): void;
}

/** The lease of a running attempt, by this process's monotonic clock. */
export class TurnLease {
  private end: number;
  /** Shared by all calls that found the lease ended. */
  private renewing: Promise<void> | null = null;

  /** @param claimSentAt when the claim was sent, by `performance.now()`: the lease began then or later */
  constructor(
    private readonly hold: TurnHold,
    private readonly ledger: TurnLedger,
    private readonly leaseMs: number,
    claimSentAt: number,
    private readonly listener: LeaseListener,
  ) {
    this.end = claimSentAt + leaseMs;
  }

  get hasEnded(): boolean {
    return performance.now() >= this.end;
  }

  async renew(): Promise<void> {
    const sentAt = performance.now();
    try {
      const { cancelMode } = await this.ledger.renew(this.hold, this.leaseMs);
      this.end = sentAt + this.leaseMs;
      if (cancelMode) this.listener.cancelled(cancelMode);
    } catch (error) {
      if (error instanceof TurnFencedError || this.hasEnded) this.listener.lost(error);
    }
  }

  /**
   * Renews a lease that has ended: this machine may have slept while another worker took the turn (FIX-07).
   * @returns undefined while the lease lasts
   */
  renewIfEnded(): Promise<void> | undefined {
    if (!this.hasEnded) return undefined;
    this.renewing ??= this.renew().finally(() => (this.renewing = null));
    return this.renewing;
  }

  /** Retries a store call that failed because the store was unavailable, until the lease ends. */
  async retrying<T>(call: () => Promise<T>): Promise<T> {
    for (let pauseMs = 20; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof StoreUnavailableError) || performance.now() + pauseMs >= this.end) throw error;
        await delay(pauseMs);
      }
    }
  }
}
