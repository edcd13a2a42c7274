import { setTimeout as delay } from 'node:timers/promises';
import { type Deadline } from '../common/deadline.js';
import { type LaneService } from '../turn/lane.service.js';
import { type Lane, type LaneHead } from '../ledger/lane.js';

const PAGE = 500;
/** The maximum number of stuck lanes to count, because each is read again. */
const MAX_STUCK = 100;
/** The delay between two checks: longer than a turn needs to pass from one worker to the next. */
const SECOND_CHECK_MS = 200;

/** Counts over all lanes with open turns. */
export interface LaneHealth {
  readonly lanes: number;
  readonly queued: number;
  readonly running: number;
  /** Turns that wait for a signal. */
  readonly waiting: number;
  /** The age of the turn that has been queued longest; 0 if none is queued. */
  readonly oldestWaitMs: number;
  /** Lanes whose first turn is due but has not been claimed for too long; at most 100. */
  readonly stuck: number;
}

/** A check that several callers may wait for. */
interface CheckInProgress {
  /** The latest deadline of the waiting callers. */
  deadline: Deadline;
  readonly health: Promise<LaneHealth>;
}

/** Shares one check among concurrent callers, because a check reads many lanes and probes call it periodically. */
export class LaneChecks {
  private readonly inProgress = new Map<number, CheckInProgress>();

  constructor(private readonly lanes: () => LaneService) {}

  /**
   * @param deadline the end of the caller's wait
   * @throws DeadlineError once no caller is waiting
   */
  run(stuckAfterMs: number, deadline: Deadline): Promise<LaneHealth> {
    const known = this.inProgress.get(stuckAfterMs);
    if (known && !known.deadline.isOver) {
      known.deadline = known.deadline.orLater(deadline);
      return known.health;
    }
    const started: CheckInProgress = {
      deadline,
      health: readLanes(this.lanes(), stuckAfterMs, () => started.deadline.check()).finally(() => {
        if (this.inProgress.get(stuckAfterMs) === started) this.inProgress.delete(stuckAfterMs);
      }),
    };
    this.inProgress.set(stuckAfterMs, started);
    return started.health;
  }
}

/**
 * Reads every lane without a change. Unlike the check of the reconciler, it does not delay other checks.
 * @param assertWanted throws if no caller is waiting, which stops the reads
 */
async function readLanes(lanes: LaneService, stuckAfterMs: number, assertWanted: () => void): Promise<LaneHealth> {
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
    assertWanted();
    after = page.lanes.at(-1)?.sessionId;
    more = page.lanes.length === PAGE;
  }
  return {
    ...seen,
    oldestWaitMs: now - oldest,
    stuck: await countUnchanged(lanes, overdue.slice(0, MAX_STUCK), assertWanted),
  };
}

/**
 * Counts the lanes that are unchanged at a second check. A turn that waited behind others is already old when it
 * becomes the head, so one check is not enough.
 */
async function countUnchanged(lanes: LaneService, overdue: readonly Lane[], assertWanted: () => void): Promise<number> {
  if (overdue.length === 0) return 0;
  await delay(SECOND_CHECK_MS);
  assertWanted();
  const again = await Promise.all(overdue.map(({ sessionId }) => lanes.get(sessionId)));
  return again.filter(({ head }, index) => isSame(head, overdue[index].head)).length;
}

function isSame(a: LaneHead | undefined, b: LaneHead | undefined): boolean {
  return a?.id === b?.id && a?.status === b?.status && a?.leaseUntil === b?.leaseUntil && a?.dueAt === b?.dueAt;
}

/** Returns when a worker may claim the turn, by the store's clock in milliseconds; never: infinite. */
function dueSince({ status, leaseUntil, waitingFor, acceptedAt, dueAt }: LaneHead): number {
  const since = { running: leaseUntil, waiting: waitingFor?.until, queued: dueAt ?? acceptedAt }[status as OpenStatus];
  return since === undefined ? Infinity : Date.parse(since);
}

type OpenStatus = 'queued' | 'running' | 'waiting';
