import { type Turn } from './turn.js';

/**
 * The mode of a lane, or of all lanes (TRN-11). `paused`: turns are accepted but not claimed. `draining`: no turns are
 * accepted, and open turns are completed.
 */
export type LaneMode = 'open' | 'paused' | 'draining';

export const LANE_MODES: readonly LaneMode[] = ['open', 'paused', 'draining'];

/** The first open turn of a lane: it is running, waiting for a signal, or next. */
export interface LaneHead extends Pick<
  Turn,
  | 'id'
  | 'orchestrator'
  | 'status'
  | 'failures'
  | 'lost'
  | 'cancelMode'
  | 'waitingFor'
  | 'acceptedAt'
  | 'startedAt'
  | 'dueAt'
> {
  /** The worker that runs it: host, process id and a random part. */
  readonly worker?: string;
  /**
   * While it is running: the end of the lease, after which another worker may take over. In the past if the worker was
   * lost.
   */
  readonly leaseUntil?: string;
}

/** The current state of a session's lane. Times are ISO-8601 by the store's clock. */
export interface Lane {
  readonly sessionId: string;
  /** The mode of this lane. All lanes may be paused or draining in addition. */
  readonly mode: LaneMode;
  /** Absent if no turn is open. */
  readonly head?: LaneHead;
  /** The number of turns with status `queued`, which may include the head. */
  readonly queued: number;
  /** The time when the oldest queued turn was accepted. */
  readonly queuedSince?: string;
}

/** Selects lanes. Only lanes with open turns are listed. */
export interface LaneQuery {
  /**
   * Returns lanes of sessions after this id, in the order of the bytes of the ids. Default: starts with the first lane.
   */
  readonly after?: string;
  /** Maximum number of lanes. Default 50. */
  readonly limit?: number;
}

/** A page of lanes with open turns. */
export interface LanePage {
  /** The mode of all lanes. */
  readonly mode: LaneMode;
  readonly lanes: readonly Lane[];
}

/** Returns the worker part of a claim's holder, see {@link LaneHead.worker}. */
export function workerOf(holder: string): string {
  return holder.split('/', 1)[0];
}
