import { EventEmitter, once } from 'node:events';
import { setImmediate as nextTask } from 'node:timers/promises';
import { InProcessQueue } from '../queue/in-process/in-process-queue.js';
import { waitingSessions } from '../turn/running-turn.js';
import { type TurnQueue, type LaneVisit } from '../ledger/turn-queue.js';

/** Real milliseconds to wait for a visit, so that a handler that waits for the test does not block the clock. */
const PATIENCE_MS = 2000;

interface Visit {
  readonly sessionId: string;
  /** True after the visit exceeded the time limit, so that the queue no longer waits for it. */
  hasTimedOut: boolean;
}

/**
 * The queue of a test. Like the in-process queue, but it delivers delayed notifications by the test's clock,
 * and `rest` waits until no notification is pending and no visit runs.
 */
export class TestQueue implements TurnQueue {
  readonly label = 'on the clock of the test';
  private readonly inner: InProcessQueue;
  /** Delayed notifications: the time on the test's clock per session. */
  private readonly later = new Map<string, number>();
  /** Sessions that were notified and whose visit has not started. */
  private readonly notified = new Set<string>();
  private readonly visits = new Set<Visit>();
  private readonly events = new EventEmitter().setMaxListeners(0);

  constructor(
    private readonly now: () => number,
    concurrency: number,
  ) {
    this.inner = new InProcessQueue(concurrency);
  }

  async notify(sessionId: string, delayMs = 0): Promise<void> {
    if (delayMs > 0) {
      const dueAt = this.now() + delayMs;
      this.later.set(sessionId, Math.min(dueAt, this.later.get(sessionId) ?? dueAt));
      return;
    }
    this.notified.add(sessionId);
    await this.inner.notify(sessionId);
  }

  process(handler: LaneVisit): Promise<void> {
    return this.inner.process(async (sessionId, slot) => {
      const visit: Visit = { sessionId, hasTimedOut: false };
      this.notified.delete(sessionId);
      this.visits.add(visit);
      await handler(sessionId, slot).finally(() => {
        this.visits.delete(visit);
        this.events.emit('visited');
      });
    });
  }

  pause(): Promise<void> {
    return this.inner.pause();
  }

  resume(): Promise<void> {
    return this.inner.resume();
  }

  async close(): Promise<void> {
    await this.inner.close();
    this.later.clear();
    this.notified.clear();
  }

  /** Returns the time of the first delayed notification; `null` if none is pending. */
  nextNotification(): number | null {
    return this.later.size > 0 ? Math.min(...this.later.values()) : null;
  }

  /** Delivers due notifications, and waits until no notification is pending and no visit runs. */
  async rest(): Promise<void> {
    for (const [sessionId, dueAt] of this.later) {
      if (dueAt > this.now()) continue;
      this.later.delete(sessionId);
      await this.notify(sessionId);
    }
    // The next visit and waiting callers resume just after a visit ends.
    await nextTask();
    while (this.isBusy() && (await this.hasVisitEnded())) await nextTask();
  }

  private isBusy(): boolean {
    // A handler that moves the clock must not wait for itself.
    const own = waitingSessions();
    const visited = new Set([...this.visits].map(({ sessionId }) => sessionId));
    return (
      [...this.visits].some(({ sessionId, hasTimedOut }) => !hasTimedOut && !own.includes(sessionId)) ||
      [...this.notified].some((sessionId) => !visited.has(sessionId))
    );
  }

  /** @returns false if no visit ended in time */
  private async hasVisitEnded(): Promise<boolean> {
    const patience = AbortSignal.timeout(PATIENCE_MS);
    const ended = await once(this.events, 'visited', { signal: patience }).then(
      () => true,
      () => false,
    );
    if (!ended) for (const visit of this.visits) visit.hasTimedOut = true;
    return ended;
  }
}
