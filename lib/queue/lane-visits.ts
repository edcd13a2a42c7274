import { outsideRequests } from '../common/background-work.js';
import { type ReservedSlot, type VisitSlot } from '../ledger/turn-queue.js';
import { LaneSlot } from './lane-slot.js';
import { type Semaphore } from './semaphore.js';

type Visit = (slot: VisitSlot) => Promise<void>;

/** The visits that run in this process. */
export class LaneVisits {
  private readonly lanes = new Map<string, LaneSlot>();
  private readonly running = new Set<Promise<void>>();
  /** A visit must not run in the asynchronous context of the request that sent the notification. */
  private readonly outsideRequests = outsideRequests();

  /**
   * @param released called each time a visit has released its slot, to wait without it
   * @param ended called when the last visit of a lane has ended, and its slot is free
   */
  constructor(
    private readonly semaphore: Semaphore,
    private readonly released: () => void,
    private readonly ended: (sessionId: string) => void = () => undefined,
  ) {}

  has(sessionId: string): boolean {
    return this.lanes.has(sessionId);
  }

  /**
   * Starts a visit in a slot that the caller has acquired.
   * @param released called instead of the constructor's `released`
   * @returns resolves when the visit has ended, with or without an error: the visitor logs errors, and the reconciler
   * notifies again
   */
  begin(sessionId: string, visit: Visit, released = this.released): Promise<void> {
    const slot = new LaneSlot(this.semaphore, released);
    this.lanes.set(sessionId, slot);
    return this.join(sessionId, slot, visit);
  }

  /** Reserves the slot that the caller has acquired; the visit follows. */
  reserve(sessionId: string): ReservedSlot {
    return reservedSlot((visit) => void this.begin(sessionId, visit));
  }

  /**
   * Reserves the slot of the lane's running visit, which is about to end if the lane is idle. Returns `null` if no
   * visit runs, or another one has already joined it.
   */
  reserveNext(sessionId: string): ReservedSlot | null {
    const slot = this.lanes.get(sessionId);
    if (slot?.visits !== 1 || !slot.isHeld) return null;
    return reservedSlot((visit) => void this.join(sessionId, slot, visit));
  }

  /** Resolves when all running visits have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.running);
  }

  private join(sessionId: string, slot: LaneSlot, visit: Visit): Promise<void> {
    const running = this.outsideRequests(() => this.run(sessionId, slot, visit));
    this.running.add(running);
    return running.finally(() => this.running.delete(running));
  }

  private async run(sessionId: string, slot: LaneSlot, visit: Visit): Promise<void> {
    slot.visits += 1;
    await visit(slot).catch(() => undefined);
    slot.visits -= 1;
    if (slot.visits > 0) return;
    if (this.lanes.get(sessionId) === slot) this.lanes.delete(sessionId);
    slot.end();
    this.ended(sessionId);
  }
}

/** @param begin starts the given visit, which waits until the caller decides */
function reservedSlot(begin: (visit: Visit) => void): ReservedSlot {
  let decide!: (visit: Visit) => void;
  const decided = new Promise<Visit>((resolve) => {
    decide = resolve;
  });
  begin(async (slot) => (await decided)(slot));
  return { visit: decide, release: () => decide(async () => {}) };
}
