import { type Turn } from './turn.js';

/**
 * What a lane, or every lane, does at present (TRN-11). `paused`: no turn of it is claimed, messages are still accepted;
 * `draining`: no message is accepted, what is there runs to its end.
 */
export type LaneMode = 'open' | 'paused' | 'draining';

export const LANE_MODES: readonly LaneMode[] = ['open', 'paused', 'draining'];

/** The first open turn of a lane: the one that runs, waits for a signal, or is next. */
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
  /** Who runs it: the worker's host, process id and a random part. */
  readonly worker?: string;
  /** While it runs: when another worker may take it over unless the lease is renewed; in the past once the worker is lost. */
  readonly leaseUntil?: string;
}

/** A session's lane as it stands. Times are ISO-8601 by the store's clock. */
export interface Lane {
  readonly sessionId: string;
  /** Its own; all lanes may be paused or draining besides. */
  readonly mode: LaneMode;
  /** Absent when nothing is open. */
  readonly head?: LaneHead;
  /** Turns with status `queued`; the head may be one of them. */
  readonly queued: number;
  /** When the longest queued one was accepted. */
  readonly queuedSince?: string;
}

/** Which lanes to list; only those with open turns are. */
export interface LaneQuery {
  /** Lanes of sessions after this one, in the order of their ids as bytes. Default: from the first. */
  readonly after?: string;
  /** How many lanes at most. Default 50. */
  readonly limit?: number;
}

/** A page of the lanes that have open turns. */
export interface LanePage {
  /** Of all lanes. */
  readonly mode: LaneMode;
  readonly lanes: readonly Lane[];
}

/** A claim's holder names its worker, then itself: see {@link LaneHead.worker}. */
export function workerOf(holder: string): string {
  return holder.split('/', 1)[0];
}
