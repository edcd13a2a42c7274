import { Logger } from '@nestjs/common';
import { outsideRequests } from '../common/background-work.js';
import { StoreUnavailableError } from '../common/sessions.error.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { OutageLog } from './outage-log.js';
import { workerMessages } from './worker.messages.js';

const PROBE_EVERY_MS = 2000;

/**
 * Watches the errors of the store in this process. If the store lacks a table, a function or a privilege, the worker claims no
 * turns until a probe finds that it has them (FIX-61).
 */
export class StoreWatch {
  private readonly logger = new Logger(StoreWatch.name);
  /** Logs the calls that this process repeats. */
  readonly outages = new OutageLog(this.logger);
  private readonly outsideRequests = outsideRequests();
  private problem: StoreUnavailableError | null = null;
  private timer: NodeJS.Timeout | null = null;
  private changed: (isUsable: boolean) => void = () => undefined;
  private stopped = false;

  constructor(private readonly adapter: Pick<SessionsAdapter, 'probe' | 'ping'>) {}

  /** False while the store lacks something that only an operator can add. */
  get isUsable(): boolean {
    return this.problem === null;
  }

  /** @param listener called when {@link isUsable} changes */
  onChange(listener: (isUsable: boolean) => void): void {
    this.changed = listener;
  }

  /** Called with the error of each failed store call. */
  failed(error: unknown): void {
    if (!StoreUnavailableError.isInstance(error) || error.reason !== 'deployment') return;
    if (this.problem || this.stopped) return;
    this.problem = error;
    this.logger.error(workerMessages.storeUnusable(error.message, PROBE_EVERY_MS));
    this.changed(false);
    this.probeLater();
  }

  stop(): void {
    this.stopped = true;
    if (this.timer) clearTimeout(this.timer);
  }

  private probeLater(): void {
    this.timer = this.outsideRequests(() => setTimeout(() => void this.probe(), PROBE_EVERY_MS).unref());
  }

  private async probe(): Promise<void> {
    try {
      await (this.adapter.probe ? this.adapter.probe() : this.adapter.ping());
    } catch {
      // The first error is already logged.
      if (!this.stopped) this.probeLater();
      return;
    }
    this.problem = null;
    if (this.stopped) return;
    this.logger.log('The check of the store succeeded. This process claims turns again.');
    this.changed(true);
  }
}
