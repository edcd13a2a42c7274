import { outsideRequests } from '../common/background-work.js';
import { type TurnChanges } from '../ledger/turn.store.js';

/** A check at intervals, because notifications can be lost. */
export interface ChangesPoll {
  readonly everyMs: number;
  /** Must not reject. The next check starts after this one has resolved. */
  readonly check: () => Promise<void> | void;
  /** True if the timer keeps the process running. */
  readonly keepsProcess: boolean;
}

/**
 * A subscription to changed turns, with a check at intervals. Listener and check run outside the asynchronous context
 * of the request that opens it.
 */
export class ChangesSubscription {
  private unsubscribe: (() => void) | null = null;
  private timer: NodeJS.Timeout | undefined;
  private isChecking = false;
  private readonly outsideRequests = outsideRequests();

  constructor(
    private readonly changes: TurnChanges,
    private readonly listener: Parameters<TurnChanges['subscribe']>[0],
    private readonly poll?: ChangesPoll,
  ) {}

  /** Opens the subscription. Does nothing if it is open. */
  open(): void {
    if (this.unsubscribe) return;
    this.outsideRequests(() => {
      this.unsubscribe = this.changes.subscribe(this.listener);
      if (!this.poll) return;
      this.timer = setInterval(() => void this.check(), this.poll.everyMs);
      if (!this.poll.keepsProcess) this.timer.unref();
    });
  }

  close(): void {
    this.unsubscribe?.();
    this.unsubscribe = null;
    clearInterval(this.timer);
  }

  private async check(): Promise<void> {
    if (this.isChecking) return;
    this.isChecking = true;
    await this.poll?.check();
    this.isChecking = false;
  }
}
