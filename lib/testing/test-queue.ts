import { EventEmitter, once } from 'node:events';
import { setImmediate as nextTask } from 'node:timers/promises';
import { InProcessQueue } from '../queue/in-process/in-process-queue.js';
import { waitingSessions } from '../turn/running-turn.js';
import { type TurnQueue, type LaneVisit } from '../ledger/turn-queue.js';

/** Real milliseconds for which a visit is waited for: a handler that waits for the test itself must not stop the clock. */
const PATIENCE_MS = 2000;

interface Visit {
  readonly sessionId: string;
  /** It took too long, and is waited for no more. */
  outstayed: boolean;
}

/**
 * The queue of a test: as the one in process, but a delayed ring comes when the test's clock says so, and one can wait
 * until nothing is rung or visited.
 */
export class TestQueue implements TurnQueue {
  private readonly inner: InProcessQueue;
  /** When sessions are to be rung, by the test's clock. */
  private readonly later = new Map<string, number>();
  /** Rung, and their visit has not begun. */
  private readonly rung = new Set<string>();
  private readonly visits = new Set<Visit>();
  private readonly events = new EventEmitter().setMaxListeners(0);

  constructor(
    private readonly now: () => number,
    concurrency: number,
  ) {
    this.inner = new InProcessQueue(concurrency);
  }

  async ring(sessionId: string, delayMs = 0): Promise<void> {
    if (delayMs > 0) {
      const dueAt = this.now() + delayMs;
      this.later.set(sessionId, Math.min(dueAt, this.later.get(sessionId) ?? dueAt));
      return;
    }
    this.rung.add(sessionId);
    await this.inner.ring(sessionId);
  }

  process(handler: LaneVisit): Promise<void> {
    return this.inner.process(async (sessionId, slot) => {
      const visit: Visit = { sessionId, outstayed: false };
      this.rung.delete(sessionId);
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
    this.rung.clear();
  }

  /** When the first delayed ring comes; `null`: there is none. */
  nextRing(): number | null {
    return this.later.size > 0 ? Math.min(...this.later.values()) : null;
  }

  /** Rings what is due by the test's clock, and waits until nothing is rung and no visit runs. */
  async rest(): Promise<void> {
    for (const [sessionId, dueAt] of this.later) {
      if (dueAt > this.now()) continue;
      this.later.delete(sessionId);
      await this.ring(sessionId);
    }
    // The queue starts the next visit, and callers go on, just behind a visit's end.
    await nextTask();
    while (this.isBusy() && (await this.hasVisitEnded())) await nextTask();
  }

  private isBusy(): boolean {
    // A handler that moves the clock must not wait for itself.
    const own = waitingSessions();
    const visited = new Set([...this.visits].map(({ sessionId }) => sessionId));
    return (
      [...this.visits].some(({ sessionId, outstayed }) => !outstayed && !own.includes(sessionId)) ||
      [...this.rung].some((sessionId) => !visited.has(sessionId))
    );
  }

  /** @returns false when none ended in time */
  private async hasVisitEnded(): Promise<boolean> {
    const patience = AbortSignal.timeout(PATIENCE_MS);
    const ended = await once(this.events, 'visited', { signal: patience }).then(
      () => true,
      () => false,
    );
    if (!ended) for (const visit of this.visits) visit.outstayed = true;
    return ended;
  }
}
