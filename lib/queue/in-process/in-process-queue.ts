import { type TurnQueue, type LaneVisit, type VisitPlace } from '../../ledger/turn-queue.js';
import { LaneVisits } from '../lane-visits.js';
import { VisitRoom } from '../visit-room.js';

/**
 * The default doorbell: a fair queue in this process (TRN-20). Each rung session is visited once, in the order of the
 * rings, up to `concurrency` at a time. Nothing is kept: after a restart the reconciler rings what the ledger knows.
 */
export class InProcessQueue implements TurnQueue {
  /** Rung sessions that wait for their visit, in order. */
  private readonly waiting = new Set<string>();
  /** Sessions that were rung again while they were visited. */
  private readonly rungAgain = new Set<string>();
  private readonly room: VisitRoom;
  private readonly visits: LaneVisits;
  private readonly timers = new Map<string, { readonly timer: NodeJS.Timeout; readonly dueAt: number }>();
  private handler: LaneVisit | null = null;
  private paused = false;

  constructor(concurrency: number) {
    this.room = new VisitRoom(concurrency);
    this.visits = new LaneVisits(
      this.room,
      () => this.startVisits(),
      (sessionId) => this.goOn(sessionId),
    );
  }

  async ring(sessionId: string, delayMs = 0): Promise<void> {
    if (delayMs > 0) {
      this.ringLater(sessionId, delayMs);
      return;
    }
    if (this.visits.has(sessionId)) this.rungAgain.add(sessionId);
    else this.waiting.add(sessionId);
    this.startVisits();
  }

  async process(handler: LaneVisit): Promise<void> {
    this.handler = handler;
    this.startVisits();
  }

  reserve(sessionId: string): VisitPlace | null {
    if (!this.handler || this.paused || this.waiting.size > 0) return null;
    if (this.visits.has(sessionId)) return this.visits.keepOn(sessionId);
    return this.room.tryEnter() ? this.visits.keep(sessionId) : null;
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
    const { handler } = this;
    if (!handler || this.paused) return;
    for (const sessionId of this.waiting) {
      if (!this.room.tryEnter()) return;
      this.waiting.delete(sessionId);
      void this.visits.begin(sessionId, (slot) => handler(sessionId, slot));
    }
  }

  private goOn(sessionId: string): void {
    if (this.rungAgain.delete(sessionId)) this.waiting.add(sessionId);
    this.startVisits();
  }
}
