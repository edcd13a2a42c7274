import {
  type AcceptedTurn,
  type AcceptTurn,
  IdempotencyConflictError,
  LaneDrainingError,
  LaneFullError,
  SessionBusyError,
  sessionLifecycle,
  SessionNotFoundError,
  SessionStateError,
  type Turn,
} from 'nestjs-agent-sessions';
import { endTurn, markTurn, stopTurn } from './change-turn.js';
import { headOf, newLane, watch } from './lane.js';
import { isAnyOf } from './lane-control.js';
import { type Store } from './store.js';
import { isLive, ms, type TurnRow } from './tables.js';

export function accept(store: Store, request: AcceptTurn): AcceptedTurn {
  const known = store.turns.get(request.id)?.turn ?? sameKey(store, request);
  if (known) return { turn: known, duplicate: true, ring: known.status === 'queued' };
  assertTakesTurns(store, request);

  const { sessionId, maxQueued, idempotency } = request;
  if (isAnyOf(store, sessionId, 'draining')) throw new LaneDrainingError(sessionId);
  const head = headOf(store, sessionId);
  if (head) makeWay(store, head, request);
  const queued = [...store.turns.by('open', [sessionId])].filter(({ turn }) => !hasBegun(turn));
  if (queued.length >= maxQueued) throw new LaneFullError(sessionId, maxQueued);

  const lane = store.lanes.get(sessionId) ?? newLane(store, sessionId);
  const { turn } = store.turns.put({
    turn: newTurn(store, request, lane.nextPosition),
    idempotencyHash: idempotency?.hash,
  });
  const next = { ...lane, nextPosition: lane.nextPosition + 1 };
  const hasNewHead = headOf(store, sessionId)?.turn.id !== head?.turn.id;
  if (hasNewHead) return { turn, duplicate: false, ring: watch(store, next) };
  store.lanes.put(next);
  return { turn, duplicate: false, ring: false };
}

/** The newest turn of the key, unless it was settled so long ago that the key is free again. */
function sameKey(store: Store, { sessionId, idempotency }: AcceptTurn): Turn | undefined {
  const row = idempotency && store.turns.last('key', [sessionId, idempotency.key]);
  if (!row) return undefined;
  const { id, settledAt } = row.turn;
  if (settledAt !== undefined && ms(settledAt) + idempotency.ttlMs <= store.now) return undefined;
  if (row.idempotencyHash !== idempotency.hash) throw new IdempotencyConflictError(sessionId, id);
  return row.turn;
}

function assertTakesTurns(store: Store, { sessionId, foreignSession, maxSessionLifetimeMs }: AcceptTurn): void {
  if (store.erased.get(sessionId)) throw new SessionNotFoundError(sessionId);
  if (foreignSession) return;
  const session = store.sessions.get(sessionId);
  if (!session) throw new SessionNotFoundError(sessionId);
  if (!isLive(session) || sessionLifecycle.isOverdue(session, store.time(), maxSessionLifetimeMs)) {
    throw new SessionStateError(sessionId, 'expired', 'accept a turn');
  }
}

function makeWay(store: Store, head: TurnRow, { id, sessionId, whenBusy }: AcceptTurn): void {
  const { turn } = head;
  if (whenBusy === 'reject') {
    const leaseEnd = store.lanes.get(sessionId)?.running?.leaseEnd ?? 0;
    throw new SessionBusyError(sessionId, turn.id, leaseEnd > store.now, turn.startedAt ?? turn.acceptedAt);
  }
  if (whenBusy === 'latest' || whenBusy === 'replace') {
    for (const row of store.turns.by('open', [sessionId])) {
      if (!hasBegun(row.turn)) endTurn(store, row, { status: 'superseded', supersededBy: id });
    }
  }
  if (whenBusy === 'interrupt' || whenBusy === 'rollback' || whenBusy === 'replace') {
    const mode = whenBusy === 'replace' ? 'interrupt' : whenBusy;
    if (turn.status === 'running') markTurn(store, head, mode);
    else if (hasBegun(turn)) stopTurn(store, head, mode);
  }
}

/** Whether it holds the lane, also while it is queued again. */
function hasBegun({ startedAt }: Turn): boolean {
  return startedAt !== undefined;
}

function newTurn(store: Store, request: AcceptTurn, position: number): Turn {
  const { id, sessionId, orchestrator, version, request: asked, attributes, idempotency } = request;
  return {
    id,
    sessionId,
    position,
    orchestrator,
    version,
    request: asked,
    attributes,
    idempotencyKey: idempotency?.key,
    status: 'queued',
    failures: 0,
    lost: 0,
    acceptedAt: store.time(),
  };
}
