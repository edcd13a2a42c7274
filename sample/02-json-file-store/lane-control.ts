import {
  type Lane,
  type LaneControl,
  type LaneHead,
  type LanePage,
  type LaneQuery,
  SessionNotFoundError,
  type Turn,
  workerOf,
} from 'nestjs-agent-sessions';
import { ALL_LANES, headOf, newLane, watch } from './lane.js';
import { type Store } from './store.js';
import { type LaneRow } from './tables.js';

/** Whether the lane, or the row that stands for all of them, has the mode. */
export function isAnyOf(store: Store, sessionId: string, mode: Lane['mode']): boolean {
  return [sessionId, ALL_LANES].some((id) => store.lanes.get(id)?.mode === mode);
}

/** Whether no turn is given out. A lane that is paused itself is offered no more until it is opened. */
export function isPaused(store: Store, lane: LaneRow): boolean {
  if (lane.mode === 'paused') store.lanes.put({ ...lane, attentionAt: undefined });
  return isAnyOf(store, lane.sessionId, 'paused');
}

export function controlLane(store: Store, { sessionId, mode, foreignSession }: LaneControl): { ring: boolean } {
  if (sessionId !== null) assertThere(store, sessionId, foreignSession);
  const id = sessionId ?? ALL_LANES;
  const lane = { ...(store.lanes.get(id) ?? newLane(store, id)), mode: mode === 'open' ? undefined : mode };
  const rings = watch(store, lane);
  const lapsed = lane.running !== undefined && lane.running.leaseEnd <= store.now;
  return { ring: mode !== 'paused' && (rings || lapsed) };
}

function assertThere(store: Store, sessionId: string, foreignSession = false): void {
  const isThere = foreignSession || store.sessions.get(sessionId) !== undefined;
  if (!isThere || store.erased.get(sessionId)) throw new SessionNotFoundError(sessionId);
}

export function pageOfLanes(store: Store, { after = '', limit = 50 }: LaneQuery): LanePage {
  const lanes: Lane[] = [];
  let from = after;
  while (lanes.length < limit) {
    // Behind all turns of the lane before.
    const next = store.turns.first('open', [], [from, Infinity]);
    if (!next) break;
    from = next.turn.sessionId;
    lanes.push(laneOf(store, from));
  }
  return { mode: store.lanes.get(ALL_LANES)?.mode ?? 'open', lanes };
}

export function laneOf(store: Store, sessionId: string): Lane {
  const { mode = 'open', running } = store.lanes.get(sessionId) ?? {};
  const open = [...store.turns.by('open', [sessionId])].map(({ turn }) => turn);
  const queued = open.filter(({ status }) => status === 'queued');
  const head = headOf(store, sessionId)?.turn;
  return {
    sessionId,
    mode,
    queued: queued.length,
    ...(queued.length > 0 && { queuedSince: queued[0].acceptedAt }),
    ...(head && { head: shown(head, running) }),
  };
}

function shown(turn: Turn, running: LaneRow['running']): LaneHead {
  const { id, orchestrator, status, failures, lost, cancelMode, waitingFor, acceptedAt, startedAt, dueAt } = turn;
  return {
    id,
    orchestrator,
    status,
    failures,
    lost,
    acceptedAt,
    ...(cancelMode && { cancelMode }),
    ...(waitingFor && { waitingFor }),
    ...(startedAt && { startedAt }),
    ...(dueAt && { dueAt }),
    ...(running && { worker: workerOf(running.holder), leaseUntil: new Date(running.leaseEnd).toISOString() }),
  };
}
