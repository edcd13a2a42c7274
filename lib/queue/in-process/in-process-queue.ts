import { outsideRequests } from '../../common/outside-requests.js';
import { type TurnQueue } from '../../turn/turn-queue.js';

/**
 * The default doorbell: a fair queue in this process (TRN-20). Each rung session is visited once, in the order of the
 * rings, up to `concurrency` at a time. Nothing is kept: after a restart the reconciler rings what the ledger knows.
 */
export class InProcessQueue implements TurnQueue {
  /** Rung sessions that wait for their visit, in order. */
  private readonly waiting = new Set<string>();
  /** Sessions being visited; true when they were rung again meanwhile. */
  private readonly visited = new Map<string, boolean>();
  private readonly visits = new Set<Promise<void>>();
  private readonly timers = new Map<string, { readonly timer: NodeJS.Timeout; readonly dueAt: number }>();
  private handler: ((sessionId: string) => Promise<void>) | null = null;
  private paused = false;
  /** A visit must not run in the asynchronous context of the request that happened to ring. */
  private readonly outsideRequests = outsideRequests();

  constructor(private readonly concurrency: number) {}

  async ring(sessionId: string, delayMs = 0): Promise<void> {
    if (delayMs > 0) {
      this.ringLater(sessionId, delayMs);
      return;
    }
    if (this.visited.has(sessionId)) this.visited.set(sessionId, true);
    else this.waiting.add(sessionId);
    this.startVisits();
  }

  async process(handler: (sessionId: string) => Promise<void>): Promise<void> {
    this.handler = handler;
    this.startVisits();
  }

  async pause(): Promise<void> {
    this.paused = true;
  }

  async resume(): Promise<void> {
    this.paused = false;
    this.startVisits();
  }

  async close(): Promise<void> {
    await this.pause();
    for (const { timer } of this.timers.values()) clearTimeout(timer);
    this.timers.clear();
    await Promise.all(this.visits);
    this.waiting.clear();
  }

  /** One timer a session, for the earliest ring. */
  private ringLater(sessionId: string, delayMs: number): void {
    const dueAt = performance.now() + delayMs;
    const pending = this.timers.get(sessionId);
    if (pending && pending.dueAt <= dueAt) return;
    if (pending) clearTimeout(pending.timer);
    const timer = setTimeout(() => {
      this.timers.delete(sessionId);
      void this.ring(sessionId);
    }, delayMs);
    timer.unref();
    this.timers.set(sessionId, { timer, dueAt });
  }

  private startVisits(): void {
    for (const sessionId of this.waiting) {
      if (!this.handler || this.paused || this.visited.size >= this.concurrency) return;
      this.waiting.delete(sessionId);
      this.visited.set(sessionId, false);
      const { handler } = this;
      const visit = this.outsideRequests(() => this.visit(sessionId, handler));
      this.visits.add(visit);
      void visit.finally(() => this.visits.delete(visit));
    }
  }

  private async visit(sessionId: string, handler: (sessionId: string) => Promise<void>): Promise<void> {
    try {
      await handler(sessionId);
    } catch {
      // The handler reports its own errors; the ledger still knows the work, and the reconciler rings again.
    }
    const rungAgain = this.visited.get(sessionId);
    this.visited.delete(sessionId);
    if (rungAgain) this.waiting.add(sessionId);
    this.startVisits();
  }
}
