import { SessionNotFoundError, SessionStateError } from '../../ledger/session.errors.js';
import { type StateOwnership } from '../../ledger/state.store.js';
import { TurnFencedError } from '../../ledger/turn.errors.js';
import { type LaneMode } from '../../ledger/lane.js';
import { type TurnHold } from '../../ledger/turn.store.js';
import { type SettledTurnStatus } from '../../ledger/turn.js';
import { type LaneRow, type SessionRow, type TurnRow } from './rows.js';
import { type Transaction } from './tables.js';

/** How long a notified lane may stay unclaimed before the reconciler notifies it again. */
const NOTIFY_GRACE_MS = 1000;
/** The longest pause between two offers. The worker of the last offer may be too busy, so others must be notified soon. */
const MAX_OFFER_BACKOFF_MS = 5000;

/** Rejects late writes of an erased session. @throws SessionNotFoundError */
export function assertNotErased(tx: Transaction, sessionId: string): void {
  if (tx.tombstones.get(sessionId)) throw new SessionNotFoundError(sessionId);
}

/** Rejects late writes of a session's state. @throws SessionNotFoundError, SessionStateError */
export function assertMayWrite(tx: Transaction, sessionId: string, { requireSession = false }: StateOwnership): void {
  assertNotErased(tx, sessionId);
  if (!requireSession) return;
  const session = tx.sessions.get(sessionId);
  if (!session || !isRequired(session, requireSession)) throw new SessionNotFoundError(sessionId);
  if (session.state === 'expired') throw new SessionStateError(sessionId, 'expired', 'write state');
}

/** Returns false for another session that has the same id. */
function isRequired(
  { createdAt, userId }: SessionRow,
  required: Exclude<StateOwnership['requireSession'], undefined>,
): boolean {
  return typeof required !== 'object' || (createdAt === Date.parse(required.createdAt) && userId === required.userId);
}

/** The id of the row that represents all lanes. No session has this id. */
export const ALL_LANES = '';

/** An `attentionAt` that sorts before every other lane that waits for a worker. */
export const BEFORE_OTHERS = 0;

export function modeOfAll(tx: Transaction): LaneMode {
  return tx.lanes.get(ALL_LANES)?.mode ?? 'open';
}

/** Creates the lane of a session for its first turn. */
export function makeLane(tx: Transaction, sessionId: string): LaneRow {
  const lane: LaneRow = {
    sessionId,
    nextPosition: 1,
    depth: 0,
    fence: tx.now,
    runningTurn: null,
    holder: null,
    leaseUntil: null,
    awaited: null,
    attentionAt: null,
    offers: 0,
    firstAttentionAt: null,
    mode: null,
    epochs: null,
  };
  tx.lanes.insert(lane);
  return lane;
}

export function isLapsed(lane: LaneRow, now: number): boolean {
  return lane.leaseUntil !== null && lane.leaseUntil <= now;
}

/** Returns whether an open turn holds its lane. It does from its first claim, even while it is queued again (TRN-06). */
export function hasBegun({ startedAt }: TurnRow): boolean {
  return startedAt !== null;
}

/** Returns the lane and the turn of a hold. @throws TurnFencedError if the hold is no longer current */
export function held(
  tx: Transaction,
  hold: TurnHold,
  turn = tx.turns.get(hold.turnId),
): { lane: LaneRow; turn: TurnRow } {
  const lane = tx.lanes.get(hold.sessionId);
  if (!lane || !turn || lane.runningTurn !== hold.turnId || lane.fence !== hold.fence) {
    throw new TurnFencedError(hold.sessionId, hold.turnId, hold.fence);
  }
  return { lane, turn };
}

/** Ends an open turn. Does not update the lane: call {@link restLane} afterwards. */
export function endTurn(
  tx: Transaction,
  turn: TurnRow,
  status: SettledTurnStatus | 'superseded',
  changes: Partial<TurnRow> = {},
): TurnRow {
  const ended: Partial<TurnRow> = {
    status,
    settledAt: tx.now,
    dueAt: null,
    cancelMode: null,
    keep: null,
    waitSignal: null,
    waitStep: null,
    waitUntil: null,
    ...changes,
  };
  tx.turns.update(turn.id, ended);
  tx.changed(turn.id);
  return { ...turn, ...ended };
}

/**
 * Updates a lane without a running turn. Its head determines when the lane is next due.
 * @param depth the number of remaining open turns
 * @returns whether to notify workers, because the head is due now
 */
export function restLane(tx: Transaction, sessionId: string, depth: number): boolean {
  const head = depth > 0 ? tx.turns.head(sessionId) : undefined;
  const attentionAt = head ? attentionOf(head, tx.now) : null;
  tx.lanes.update(sessionId, { depth, runningTurn: null, holder: null, leaseUntil: null, attentionAt, offers: 0 });
  return head !== undefined && isDue(head, tx.now);
}

/** Returns whether a head that is not running can be claimed. */
export function isDue(head: TurnRow, now: number): boolean {
  if (head.status === 'waiting') return head.waitUntil !== null && head.waitUntil <= now;
  return head.dueAt === null || head.dueAt <= now;
}

/** Returns whether the lane has a due turn that is not running. */
export function hasFreeHead(tx: Transaction, sessionId: string): boolean {
  if (tx.lanes.get(sessionId)?.runningTurn !== null) return false;
  const head = tx.turns.head(sessionId);
  return head !== undefined && isDue(head, tx.now);
}

/** Cancels queued and waiting turns. A running turn continues. @returns the number of cancelled turns */
export function cancelOpenTurns(tx: Transaction, sessionId: string): number {
  const lane = tx.lanes.get(sessionId);
  if (!lane) return 0;
  const open = tx.turns.open(sessionId).filter((turn) => turn.id !== lane.runningTurn);
  for (const turn of open) endTurn(tx, turn, 'cancelled');
  const depth = lane.depth - open.length;
  if (lane.runningTurn === null) restLane(tx, sessionId, depth);
  else tx.lanes.update(sessionId, { depth });
  return open.length;
}

/** Returns lanes to notify. The pause before the next offer of a lane doubles until a worker claims it. */
export function offerDueLanes(tx: Transaction, limit: number, includeOffered: boolean): string[] {
  if (modeOfAll(tx) === 'paused') return [];
  const until = tx.now + MAX_OFFER_BACKOFF_MS;
  const lanes = includeOffered ? tx.lanes.dueOrOffered(tx.now, until, limit) : tx.lanes.due(tx.now, limit);
  return lanes.map(({ sessionId, offers, attentionAt, firstAttentionAt }) => {
    const pause = Math.min(NOTIFY_GRACE_MS * 2 ** offers, MAX_OFFER_BACKOFF_MS);
    tx.lanes.update(sessionId, {
      attentionAt: tx.now + pause,
      offers: offers + 1,
      firstAttentionAt: offers === 0 ? attentionAt : firstAttentionAt,
    });
    return sessionId;
  });
}

function attentionOf(head: TurnRow, now: number): number | null {
  if (head.status === 'waiting') return head.waitUntil;
  return head.dueAt !== null && head.dueAt > now ? head.dueAt : now + NOTIFY_GRACE_MS;
}
