import { setTimeout as delay } from 'node:timers/promises';
import { type Deadline } from '../common/deadline.js';
import { type LaneService } from '../turn/lane.service.js';
import { type Lane, type LaneHead } from '../ledger/lane.js';

const PAGE = 500;
/** Stuck lanes that are told at most: it takes a look at each. */
const MAX_STUCK = 100;
/** Between two looks: longer than a turn is on its way from one worker's hands to the next. */
const SECOND_LOOK_MS = 200;

/** All lanes with open turns, in numbers. */
export interface LaneHealth {
  readonly lanes: number;
  readonly queued: number;
  readonly running: number;
  /** For a signal. */
  readonly waiting: number;
  /** Of the turn that has been queued for the longest time; 0 when none is. */
  readonly oldestWaitMs: number;
  /** Lanes whose first turn is due and was claimed by nobody for too long: 100 at most. */
  readonly stuck: number;
}

interface Look {
  /** Of who waits for the longest time. */
  deadline: Deadline;
  readonly health: Promise<LaneHealth>;
}

/** Those who ask while somebody's look is under way are given what it finds: it reads a lot, and probes come by the clock. */
export class LaneLooks {
  private readonly underWay = new Map<number, Look>();

  constructor(private readonly lanes: () => LaneService) {}

  /**
   * @param deadline until when the caller waits
   * @throws DeadlineError once nobody waits for it any more
   */
  look(stuckAfterMs: number, deadline: Deadline): Promise<LaneHealth> {
    const known = this.underWay.get(stuckAfterMs);
    if (known && !known.deadline.isOver) {
      known.deadline = known.deadline.orLater(deadline);
      return known.health;
    }
    const look: Look = {
      deadline,
      health: lookAtLanes(this.lanes(), stuckAfterMs, () => look.deadline.check()).finally(() => {
        if (this.underWay.get(stuckAfterMs) === look) this.underWay.delete(stuckAfterMs);
      }),
    };
    this.underWay.set(stuckAfterMs, look);
    return look.health;
  }
}

/**
 * Looks at every lane, and changes nothing: unlike the reconciler's look, it does not put off anybody's.
 * @param check throws when nobody waits any more: nothing further is asked for then
 */
async function lookAtLanes(lanes: LaneService, stuckAfterMs: number, check: () => void): Promise<LaneHealth> {
  const now = Date.now();
  const seen = { lanes: 0, queued: 0, running: 0, waiting: 0 };
  const overdue: Lane[] = [];
  let oldest = now;
  for (let after: string | undefined, more = true; more;) {
    const page = await lanes.list({ limit: PAGE, ...(after === undefined ? {} : { after }) });
    for (const lane of page.lanes) {
      seen.lanes += 1;
      seen.queued += lane.queued;
      if (lane.head?.status === 'running') seen.running += 1;
      if (lane.head?.status === 'waiting') seen.waiting += 1;
      if (lane.queuedSince) oldest = Math.min(oldest, Date.parse(lane.queuedSince));
      const isHeld = page.mode === 'paused' || lane.mode === 'paused';
      if (!isHeld && lane.head && dueSince(lane.head) < now - stuckAfterMs) overdue.push(lane);
    }
    check();
    after = page.lanes.at(-1)?.sessionId;
    more = page.lanes.length === PAGE;
  }
  return { ...seen, oldestWaitMs: now - oldest, stuck: await countStill(lanes, overdue.slice(0, MAX_STUCK), check) };
}

/** A turn that was queued behind others is old when it comes to the head: whether nobody claims it, a second look tells. */
async function countStill(lanes: LaneService, overdue: readonly Lane[], check: () => void): Promise<number> {
  if (overdue.length === 0) return 0;
  await delay(SECOND_LOOK_MS);
  check();
  const again = await Promise.all(overdue.map(({ sessionId }) => lanes.get(sessionId)));
  return again.filter(({ head }, index) => isSame(head, overdue[index].head)).length;
}

function isSame(a: LaneHead | undefined, b: LaneHead | undefined): boolean {
  return a?.id === b?.id && a?.status === b?.status && a?.leaseUntil === b?.leaseUntil && a?.dueAt === b?.dueAt;
}

/** From when on a worker may claim the turn, by the store's clock in milliseconds; never: infinite. */
function dueSince({ status, leaseUntil, waitingFor, acceptedAt, dueAt }: LaneHead): number {
  const since = { running: leaseUntil, waiting: waitingFor?.until, queued: dueAt ?? acceptedAt }[status as OpenStatus];
  return since === undefined ? Infinity : Date.parse(since);
}

type OpenStatus = 'queued' | 'running' | 'waiting';
