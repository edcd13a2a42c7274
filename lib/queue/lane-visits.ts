import { outsideRequests } from '../common/outside-requests.js';
import { type VisitPlace } from '../turn/turn-queue.js';

type Visit = () => Promise<void>;

/** A lane that is visited. */
interface VisitedLane {
  /** What its visit does next: so it keeps its place when the next turn comes while it ends. */
  next: Visit | null;
}

/** The visits that run in this process. */
export class LaneVisits {
  private readonly lanes = new Map<string, VisitedLane>();
  private readonly running = new Set<Promise<void>>();
  /** A visit must not run in the asynchronous context of the request that happened to ring. */
  private readonly outsideRequests = outsideRequests();

  /** @param ended is called when a visit has ended and its place is free */
  constructor(private readonly ended: (sessionId: string) => void) {}

  has(sessionId: string): boolean {
    return this.lanes.has(sessionId);
  }

  /** Resolves when the visit has ended, however that was: whoever visits tells of errors, and the reconciler rings again. */
  begin(sessionId: string, visit: Visit): Promise<void> {
    const running = this.outsideRequests(() => this.run(sessionId, visit));
    this.running.add(running);
    return running.finally(() => this.running.delete(running));
  }

  /** Begins a visit that is yet to be told what to do. */
  keep(sessionId: string): VisitPlace {
    return place((visit) => void this.begin(sessionId, visit));
  }

  /** The same in the place of the lane's visit that runs; `null`: none does, or it is kept already. */
  keepOn(sessionId: string): VisitPlace | null {
    const lane = this.lanes.get(sessionId);
    if (!lane || lane.next) return null;
    const kept = place((visit) => (lane.next = visit));
    const { next } = lane;
    const leave = (): void => {
      // It may be kept again before its visit ends.
      if (lane.next === next) lane.next = null;
      kept.leave();
    };
    return { visit: (visit) => kept.visit(visit), leave };
  }

  /** Resolves when all that run have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.running);
  }

  private async run(sessionId: string, first: Visit): Promise<void> {
    const lane: VisitedLane = { next: null };
    this.lanes.set(sessionId, lane);
    for (let visit: Visit | null = first; visit; visit = lane.next) {
      lane.next = null;
      await visit().catch(() => undefined);
    }
    // In one go with the last look at what comes next.
    if (this.lanes.get(sessionId) === lane) this.lanes.delete(sessionId);
    this.ended(sessionId);
  }
}

function place(begin: (visit: Visit) => void): VisitPlace {
  let decide!: (visit: Visit) => void;
  const decided = new Promise<Visit>((resolve) => {
    decide = resolve;
  });
  begin(async () => (await decided)());
  return { visit: decide, leave: () => decide(async () => {}) };
}
