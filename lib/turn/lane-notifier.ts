import { Logger } from '@nestjs/common';
import { Deadline, DeadlineError } from '../common/deadline.js';
import { traceOf } from '../common/error-trace.js';
import { type TurnQueue } from '../ledger/turn-queue.js';

/** How long a caller waits for the queue to answer. */
const PATIENCE_MS = 1000;

const NOTHING_LOST = 'Turns are still accepted and stored, and run when the queue is available again.';

/**
 * Notifies a lane whose turn is already stored. An unavailable queue does not fail the caller: the reconciler notifies
 * again from the ledger.
 */
export class LaneNotifier {
  private readonly logger = new Logger(LaneNotifier.name);
  private failing = false;
  private isOutageLogged = false;
  /** Notified sessions without an answer yet. */
  private readonly unanswered = new Set<string>();

  constructor(private readonly queue: Pick<TurnQueue, 'notify' | 'ping'>) {}

  /** Returns true if the queue answers. After a notification without an answer, the queue must answer a ping first. */
  async isAnswered(): Promise<boolean> {
    if (!this.failing || !this.queue.ping) return true;
    try {
      await new Deadline(PATIENCE_MS).wait(this.queue.ping());
      this.failing = false;
    } catch {
      // The outage is already logged.
    }
    return !this.failing;
  }

  /** @param overdue see {@link TurnQueue.notify} */
  async notify(sessionId: string, delayMs = 0, overdue = false): Promise<void> {
    // During an outage at most one notification per lane is pending, which bounds the load when the queue is back.
    if (this.failing && this.unanswered.has(sessionId)) return;
    const notified = this.send(sessionId, delayMs, overdue);
    // Do not wait during an outage; this or the next notification detects its end.
    if (this.failing) return;
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        this.failed(new DeadlineError(PATIENCE_MS));
        resolve();
      }, PATIENCE_MS);
    });
    await Promise.race([notified, patience]).finally(() => clearTimeout(timer));
  }

  private async send(sessionId: string, delayMs: number, overdue: boolean): Promise<void> {
    this.unanswered.add(sessionId);
    try {
      await this.queue.notify(sessionId, delayMs, overdue);
      if (this.isOutageLogged) this.logger.log('The queue is available again. Waiting turns continue.');
      this.failing = false;
      this.isOutageLogged = false;
    } catch (error) {
      this.failed(error);
    } finally {
      this.unanswered.delete(sessionId);
    }
  }

  /**
   * Logs once per outage. The outage ends with a successful notification, because a full server answers pings but
   * accepts no notifications.
   */
  private failed(error: unknown): void {
    this.failing = true;
    if (this.isOutageLogged) return;
    this.isOutageLogged = true;
    // The stack of a deadline error contains nothing useful, so it is not logged.
    if (error instanceof DeadlineError) this.logger.warn(`The queue does not answer. ${NOTHING_LOST}`);
    else this.logger.error(`Notifying the queue failed. ${NOTHING_LOST}`, traceOf(error));
  }
}
