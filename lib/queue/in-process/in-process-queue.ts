import { type TurnQueue, type LaneVisit, type ReservedSlot } from '../../ledger/turn-queue.js';
import { LaneVisits } from '../lane-visits.js';
import { Semaphore } from '../semaphore.js';

/**
 * The default queue: fair, and in this process only (TRN-20). Notified sessions are visited in order, up to
 * `concurrency` at a time; repeated notifications are merged. Nothing is stored: after a restart, the reconciler
 * notifies lanes from the ledger.
 */
export class InProcessQueue implements TurnQueue {
  readonly label = 'in this process';
  /** Notified sessions that wait for their visit, in order. */
  private readonly waiting = new Set<string>();
  /** The same for overdue sessions. Visits alternate between both, so that neither kind waits for all of the other. */
  private readonly overdue = new Set<string>();
  private isOverdueNext = true;
  /** Sessions that were notified again during their visit. */
  private readonly notifiedAgain = new Set<string>();
  private readonly semaphore: Semaphore;
  private readonly visits: LaneVisits;
  private readonly timers = new Map<string, { readonly timer: NodeJS.Timeout; readonly dueAt: number }>();
  private handler: LaneVisit | null = null;
  private paused = false;

  constructor(concurrency: number) {
    this.semaphore = new Semaphore(concurrency);
    this.visits = new LaneVisits(
      this.semaphore,
      () => this.startVisits(),
      (sessionId) => this.visitEnded(sessionId),
    );
  }

  async notify(sessionId: string, delayMs = 0, overdue = false): Promise<void> {
    if (delayMs > 0) {
      this.notifyLater(sessionId, delayMs);
      return;
    }
    if (this.visits.has(sessionId)) this.notifiedAgain.add(sessionId);
    else if (overdue && !this.waiting.has(sessionId)) this.overdue.add(sessionId);
    else if (!this.overdue.has(sessionId)) this.waiting.add(sessionId);
    this.startVisits();
  }

  async process(handler: LaneVisit): Promise<void> {
    this.handler = handler;
    this.startVisits();
  }

  reserve(sessionId: string): ReservedSlot | null {
    if (!this.handler || this.paused || this.waiting.size + this.overdue.size > 0) return null;
    if (this.visits.has(sessionId)) return this.visits.reserveNext(sessionId);
    return this.semaphore.tryAcquire() ? this.visits.reserve(sessionId) : null;
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
    await this.visits.settled();
    this.waiting.clear();
    this.overdue.clear();
  }

  /** Sets one timer per session, for the earliest notification. */
  private notifyLater(sessionId: string, delayMs: number): void {
    const dueAt = performance.now() + delayMs;
    const pending = this.timers.get(sessionId);
    if (pending && pending.dueAt <= dueAt) return;
    if (pending) clearTimeout(pending.timer);
    const timer = setTimeout(() => {
      this.timers.delete(sessionId);
      void this.notify(sessionId);
    }, delayMs);
    timer.unref();
    this.timers.set(sessionId, { timer, dueAt });
  }

  private startVisits(): void {
    const { handler } = this;
    if (!handler || this.paused) return;
    while (this.waiting.size + this.overdue.size > 0 && this.semaphore.tryAcquire()) {
      const sessionId = this.takeNext();
      void this.visits.begin(sessionId, (slot) => handler(sessionId, slot));
    }
  }

  private takeNext(): string {
    const isOverdue = this.waiting.size === 0 || (this.isOverdueNext && this.overdue.size > 0);
    this.isOverdueNext = !isOverdue;
    const sessions = isOverdue ? this.overdue : this.waiting;
    const [next] = sessions;
    sessions.delete(next);
    return next;
  }

  private visitEnded(sessionId: string): void {
    if (this.notifiedAgain.delete(sessionId)) this.waiting.add(sessionId);
    this.startVisits();
  }
}
