import { outsideRequests } from '../common/outside-requests.js';
import { type VisitPlace } from '../turn/turn-queue.js';

type Visit = () => Promise<void>;

/** A place of this process that a lane has, and how many visits share it. */
interface Stay {
  visits: number;
}

/** The visits that run in this process. */
export class LaneVisits {
  private readonly lanes = new Map<string, Stay>();
  private readonly running = new Set<Promise<void>>();
  /** A visit must not run in the asynchronous context of the request that happened to ring. */
  private readonly outsideRequests = outsideRequests();

  /** @param ended is called when a lane has left its place */
  constructor(private readonly ended: (sessionId: string) => void) {}

  has(sessionId: string): boolean {
    return this.lanes.has(sessionId);
  }

  /** Resolves when the visit has ended, however that was: whoever visits tells of errors, and the reconciler rings again. */
  begin(sessionId: string, visit: Visit): Promise<void> {
    const stay = { visits: 0 };
    this.lanes.set(sessionId, stay);
    return this.join(sessionId, stay, visit);
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
    const stay = this.lanes.get(sessionId);
    if (stay?.visits !== 1) return null;
    return placeFor((visit) => void this.join(sessionId, stay, visit));
  }

  /** Resolves when all that run have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.running);
  }

  private join(sessionId: string, stay: Stay, visit: Visit): Promise<void> {
    const running = this.outsideRequests(() => this.run(sessionId, stay, visit));
    this.running.add(running);
    return running.finally(() => this.running.delete(running));
  }

  private async run(sessionId: string, stay: Stay, visit: Visit): Promise<void> {
    stay.visits += 1;
    await visit().catch(() => undefined);
    stay.visits -= 1;
    if (stay.visits > 0) return;
    if (this.lanes.get(sessionId) === stay) this.lanes.delete(sessionId);
    this.ended(sessionId);
  }
}

/** @param begin begins the visit that it is given, which waits for what it is to do */
function placeFor(begin: (visit: Visit) => void): VisitPlace {
  let decide!: (visit: Visit) => void;
  const decided = new Promise<Visit>((resolve) => {
    decide = resolve;
  });
  begin(async () => (await decided)());
  return { visit: decide, leave: () => decide(async () => {}) };
}
