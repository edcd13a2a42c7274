import { outsideRequests } from '../common/outside-requests.js';
import { type VisitPlace, type VisitSlot } from '../ledger/turn-queue.js';
import { LaneSlot } from './lane-slot.js';
import { type VisitRoom } from './visit-room.js';

type Visit = (slot: VisitSlot) => Promise<void>;

/** The visits that run in this process. */
export class LaneVisits {
  private readonly lanes = new Map<string, LaneSlot>();
  private readonly running = new Set<Promise<void>>();
  /** A visit must not run in the asynchronous context of the request that happened to ring. */
  private readonly outsideRequests = outsideRequests();

  /**
   * @param released is called when a visit has released its slot until it takes it again
   * @param ended is called when a lane has left its slot
   */
  constructor(
    private readonly room: VisitRoom,
    private readonly released: () => void,
    private readonly ended: (sessionId: string) => void = () => undefined,
  ) {}

  has(sessionId: string): boolean {
    return this.lanes.has(sessionId);
  }

  /**
   * Begins a visit in a slot that the caller has entered.
   * @param released is called instead of the constructor's
   * @returns resolves when the visit has ended, with or without an error: the visitor logs errors, and the reconciler rings again
   */
  begin(sessionId: string, visit: Visit, released = this.released): Promise<void> {
    const slot = new LaneSlot(this.room, released);
    this.lanes.set(sessionId, slot);
    return this.join(sessionId, slot, visit);
  }

  /** Begins a visit that is yet to be told what to do. */
  keep(sessionId: string): VisitPlace {
    return placeFor((visit) => void this.begin(sessionId, visit));
  }

  /**
   * The same in the place of the lane's visit that runs: a lane that is idle again has one that is about to end. `null`: none
   * runs, or another one has come already.
   */
  keepOn(sessionId: string): VisitPlace | null {
    const slot = this.lanes.get(sessionId);
    if (slot?.visits !== 1 || !slot.isHeld) return null;
    return placeFor((visit) => void this.join(sessionId, slot, visit));
  }

  /** Resolves when all that run have ended. */
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

/** @param begin begins the visit that it is given, which waits for what it is to do */
function placeFor(begin: (visit: Visit) => void): VisitPlace {
  let decide!: (visit: Visit) => void;
  const decided = new Promise<Visit>((resolve) => {
    decide = resolve;
  });
  begin(async (slot) => (await decided)(slot));
  return { visit: decide, leave: () => decide(async () => {}) };
}
