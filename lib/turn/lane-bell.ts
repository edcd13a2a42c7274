import { Logger } from '@nestjs/common';
import { Deadline, DeadlineError } from '../common/deadline.js';
import { traceOf } from '../common/error-trace.js';
import { type TurnQueue } from '../ledger/turn-queue.js';

/** How long a caller waits for a queue that does not answer. */
const PATIENCE_MS = 1000;

const NOTHING_LOST = 'Turns are accepted, stored and wait for it; nothing is lost.';

/**
 * Rings for a lane whose turn is stored already, so that a queue that is away fails nobody: the reconciler rings again for
 * what the ledger knows.
 */
export class LaneBell {
  private readonly logger = new Logger(LaneBell.name);
  private failing = false;
  private isTold = false;
  /** Sessions that were rung for, without an answer yet. */
  private readonly unanswered = new Set<string>();

  constructor(private readonly queue: Pick<TurnQueue, 'ring' | 'ping'>) {}

  /** Whether somebody hears it: after a ring without an answer, the queue must answer something else first. */
  async isHeard(): Promise<boolean> {
    if (!this.failing || !this.queue.ping) return true;
    try {
      await new Deadline(PATIENCE_MS).wait(this.queue.ping());
      this.failing = false;
    } catch {
      // It was told that the queue is away.
    }
    return !this.failing;
  }

  async ring(sessionId: string, delayMs = 0): Promise<void> {
    // While it is away one ring of a lane waits for it: what it hears when it is back has a bound.
    if (this.failing && this.unanswered.has(sessionId)) return;
    const rung = this.ask(sessionId, delayMs);
    // Nobody waits for that one; that the queue is back is heard from it or the next.
    if (this.failing) return;
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        this.failed(new DeadlineError(PATIENCE_MS));
        resolve();
      }, PATIENCE_MS);
    });
    await Promise.race([rung, patience]).finally(() => clearTimeout(timer));
  }

  private async ask(sessionId: string, delayMs: number): Promise<void> {
    this.unanswered.add(sessionId);
    try {
      await this.queue.ring(sessionId, delayMs);
      if (this.isTold) this.logger.log('The queue is back: what waited for it goes on.');
      this.failing = false;
      this.isTold = false;
    } catch (error) {
      this.failed(error);
    } finally {
      this.unanswered.delete(sessionId);
    }
  }

  /** Told once per outage, which ends with a ring that is heard: a full server answers, and takes nothing. */
  private failed(error: unknown): void {
    this.failing = true;
    if (this.isTold) return;
    this.isTold = true;
    // That there was no answer is all there is to say: where in here it was waited for helps nobody.
    if (error instanceof DeadlineError) this.logger.warn(`The queue does not answer. ${NOTHING_LOST}`);
    else this.logger.error(`The queue has a problem. ${NOTHING_LOST}`, traceOf(error));
  }
}
