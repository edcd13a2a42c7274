import { SessionNotFoundError, SessionStateError } from '../../ledger/session.errors.js';
import { IdempotencyConflictError, LaneFullError, SessionBusyError } from '../../ledger/turn.errors.js';
import { type AcceptedTurn, type AcceptTurn } from '../../ledger/turn.store.js';
import { type CancelMode, type WhenBusy } from '../../ledger/turn.js';
import { claimHead, repeatClaim } from './claim-turn.js';
import { assertNotErased, endTurn, hasBegun, isLapsed, isRequired, makeLane, restLane } from './lane.js';
import { assertTakesTurns } from './lane-control.js';
import { iso } from './iso.js';
import { toAcceptedRow, toTurn } from './row-mapping.js';
import { emptyRow, type LaneRow, type TurnRow } from './rows.js';
import { stopTurn } from './stop-turn.js';
import { type Transaction } from './tables.js';

/** The cancel mode of each policy that stops the turn at the head of the lane. */
const STOPS: Partial<Record<WhenBusy, CancelMode>> = {
  interrupt: 'interrupt',
  rollback: 'rollback',
  replace: 'interrupt',
};

/** Implements TurnLedger.accept. Checks repeats, the session, its lane, the policy and limits, then inserts and claims the turn. */
export function acceptTurn(tx: Transaction, request: AcceptTurn): AcceptedTurn {
  const known = knownTurn(tx, request);
  if (known) return answerAgain(tx, known, request);

  assertSessionTakesTurns(tx, request);
  const lane = tx.lanes.get(request.sessionId) ?? makeLane(tx, request.sessionId);
  assertTakesTurns(tx, lane);
  const { depth, headChanges } = applyWhenBusy(tx, request, lane);

  const turn = newTurn(request, lane.nextPosition, tx.now);
  tx.turns.insert(turn);
  const added = { nextPosition: lane.nextPosition + 1, depth: depth + 1 };
  tx.lanes.update(lane.sessionId, added);
  const claimed = depth === 0 && request.claim ? claimHead(tx, { ...lane, ...added }, turn, request.claim) : null;
  if (claimed) return { turn: toTurn(turn), duplicate: false, notify: false, claimed };
  // Only a new head needs a notification. Otherwise a worker already visits the lane, or will.
  const notify = headChanges && restLane(tx, lane.sessionId, depth + 1);
  return { turn: toTurn(turn), duplicate: false, notify };
}

/** Answers a repeat with the existing turn. Its worker may have missed the first answer, including the claim. */
function answerAgain(tx: Transaction, turn: TurnRow, { claim }: AcceptTurn): AcceptedTurn {
  const claimed = claim ? repeatClaim(tx, turn, claim) : null;
  return { turn: toTurn(turn), duplicate: true, notify: turn.status === 'queued', ...(claimed ? { claimed } : {}) };
}

/** Returns the turn with the id or the idempotency key. Removes an expired key from its turn. */
function knownTurn(tx: Transaction, request: AcceptTurn): TurnRow | undefined {
  const { id, sessionId, idempotency } = request;
  const sent = tx.turns.get(id);
  const turn = sent ?? (idempotency && tx.turns.byIdempotencyKey(sessionId, idempotency.key));
  if (!turn) return undefined;
  // Another session that got the id may have a turn with the same key.
  assertSameSession(tx, request);
  if (sent || !idempotency) return turn;
  if (turn.settledAt !== null && turn.settledAt + idempotency.ttlMs <= tx.now) {
    tx.turns.update(turn.id, { idempotencyKey: null });
    return undefined;
  }
  if (turn.requestHash !== idempotency.hash) throw new IdempotencyConflictError(sessionId, turn.id);
  return turn;
}

/** @throws SessionNotFoundError if another session than the required one has the id */
function assertSameSession(tx: Transaction, { sessionId, foreignSession, requireSession }: AcceptTurn): void {
  if (foreignSession || !requireSession) return;
  const session = tx.sessions.get(sessionId);
  if (session && !isRequired(session, requireSession)) throw new SessionNotFoundError(sessionId);
}

function assertSessionTakesTurns(tx: Transaction, request: AcceptTurn): void {
  const { sessionId, foreignSession, maxSessionLifetimeMs = Infinity } = request;
  assertNotErased(tx, sessionId);
  if (foreignSession) return;
  assertSameSession(tx, request);
  const session = tx.sessions.get(sessionId);
  if (!session) throw new SessionNotFoundError(sessionId);
  if (session.state === 'expired' || tx.now - session.createdAt > maxSessionLifetimeMs)
    throw new SessionStateError(sessionId, 'expired', 'accept a turn');
}

/** Applies `whenBusy` to a busy lane. @returns the number of remaining open turns, and whether the head changes */
function applyWhenBusy(tx: Transaction, request: AcceptTurn, lane: LaneRow): { depth: number; headChanges: boolean } {
  const { whenBusy, sessionId } = request;
  const head = lane.depth > 0 ? tx.turns.head(sessionId) : undefined;
  let { depth } = lane;
  if (head && whenBusy === 'reject') {
    const alive = lane.runningTurn !== null && !isLapsed(lane, tx.now);
    throw new SessionBusyError(sessionId, head.id, alive, iso(head.startedAt ?? head.acceptedAt));
  }
  if (head && (whenBusy === 'latest' || whenBusy === 'replace')) {
    const queued = tx.turns.open(sessionId).filter((turn) => !hasBegun(turn));
    for (const turn of queued) endTurn(tx, turn, 'superseded', { supersededBy: request.id });
    depth -= queued.length;
  }

  const cancelMode = STOPS[whenBusy];
  if (cancelMode && head && hasBegun(head)) {
    if (head.status !== 'running') {
      stopTurn(tx, head, cancelMode);
      depth -= 1;
    } else if (head.cancelMode === null) {
      tx.turns.update(head.id, { cancelMode });
      tx.changed(head.id);
    }
  }

  const newHead = depth > 0 ? tx.turns.head(sessionId) : undefined;
  const queued = newHead && hasBegun(newHead) ? depth - 1 : depth;
  if (queued >= request.maxQueued) throw new LaneFullError(sessionId, request.maxQueued);
  return { depth, headChanges: lane.runningTurn === null && (depth === 0 || newHead?.id !== head?.id) };
}

/** Returns the row of a turn that was just accepted. */
export function newTurn(request: AcceptTurn, position: number, now: number): TurnRow {
  return { ...NO_TURN, ...toAcceptedRow(request), position, status: 'queued', acceptedAt: now };
}

const NO_TURN: TurnRow = { ...emptyRow('turn'), status: 'queued', cancelMode: null };
