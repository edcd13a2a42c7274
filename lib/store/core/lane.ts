import { SessionNotFoundError, SessionStateError } from '../../ledger/session.errors.js';
import { type StateOwnership } from '../../ledger/state.store.js';
import { TurnFencedError } from '../../ledger/turn.errors.js';
import { type LaneMode } from '../../ledger/lane.js';
import { type TurnHold } from '../../ledger/turn.store.js';
import { type SettledTurnStatus } from '../../ledger/turn.js';
import { type LaneRow, type SessionRow, type TurnRow } from './rows.js';
import { type Transaction } from './tables.js';

/** How long a notified lane may stay unclaimed before it is offered, and the pause after the first offer. */
const NOTIFY_GRACE_MS = 1000;
/** The longest pause between two offers of a lane, see {@link offerDueLanes}. */
const MAX_OFFER_BACKOFF_MS = 5000;

/** Rejects a write that arrives after its session was erased. @throws SessionNotFoundError */
export function assertNotErased(tx: Transaction, sessionId: string): void {
  if (tx.tombstones.get(sessionId)) throw new SessionNotFoundError(sessionId);
}

/**
 * Rejects a write to the state of an erased session. With `requireSession`, the session must also exist, not have
 * expired, and be the one that the writer means. @throws SessionNotFoundError, SessionStateError
 */
export function assertMayWrite(tx: Transaction, sessionId: string, { requireSession = false }: StateOwnership): void {
  assertNotErased(tx, sessionId);
  if (!requireSession) return;
  const session = tx.sessions.get(sessionId);
  if (!session || !isRequired(session, requireSession)) throw new SessionNotFoundError(sessionId);
  if (session.state === 'expired') throw new SessionStateError(sessionId, 'expired', 'write state');
}

/** Returns false for another session that has the same id (FIX-90). */
export function isRequired(
  { createdAt, userId }: SessionRow,
  required: Exclude<StateOwnership['requireSession'], undefined>,
): boolean {
  return typeof required !== 'object' || (createdAt === Date.parse(required.createdAt) && userId === required.userId);
}

/** The id of the row whose mode applies to all lanes, in addition to their own modes. No session has this id. */
export const ALL_LANES = '';

/** The `attentionAt` of a lane whose worker has returned its turn, or has stopped. It sorts before all others. */
export const BEFORE_OTHERS = 0;

export function modeOfAll(tx: Transaction): LaneMode {
  return tx.lanes.get(ALL_LANES)?.mode ?? 'open';
}

/**
 * Creates a free lane, for the first turn of a session or to set a mode. `runningTurn`, `holder` and `leaseUntil` are
 * null. A claim sets them and raises the fence. {@link restLane} frees the lane again.
 */
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

/** Returns whether the lease of the running turn has ended, so that another worker may take the lane over. */
export function isLapsed(lane: LaneRow, now: number): boolean {
  return lane.leaseUntil !== null && lane.leaseUntil <= now;
}

/**
 * Returns whether an open turn was claimed before. It then stays the head of its lane until it ends, even while it is
 * queued for a retry or waits for a signal (TRN-06).
 */
export function hasBegun({ startedAt }: TurnRow): boolean {
  return startedAt !== null;
}

/**
 * Returns the lane and the turn of a hold. Writes of a worker begin with it.
 * @throws TurnFencedError if the hold is no longer current
 */
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
 * Frees a lane, and computes when it is next due from its head. Call it after the running turn has ended or was put
 * back, and after another change of the head of a free lane.
 * @param depth the number of remaining open turns
 * @returns whether to notify workers, because the head is due now
 */
export function restLane(tx: Transaction, sessionId: string, depth: number): boolean {
  const head = depth > 0 ? tx.turns.head(sessionId) : undefined;
  const attentionAt = head ? attentionOf(head, tx.now) : null;
  tx.lanes.update(sessionId, { depth, runningTurn: null, holder: null, leaseUntil: null, attentionAt, offers: 0 });
  return head !== undefined && isDue(head, tx.now);
}

/** Returns whether a head that is not running can be claimed. A waiting head can at its timeout: a signal queues it. */
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

/**
 * Offers due lanes: the reconciler notifies workers of the returned lanes. Workers may be too busy to claim an offered
 * lane, so it is due again after 1 s, 2 s, 4 s, and then every 5 s. A claim or a renewal ends the offers.
 * @param includeOffered also returns offered lanes whose pause has not ended, see `TurnLedger.due`
 */
export function offerDueLanes(tx: Transaction, limit: number, includeOffered: boolean): string[] {
  if (modeOfAll(tx) === 'paused') return [];
  // Every offered lane is due again by then.
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

/**
 * Returns when the reconciler must offer a lane with this head. Workers are notified of a due head now, so the
 * reconciler waits a moment. A head that waits for a signal without a timeout needs no offer.
 */
function attentionOf(head: TurnRow, now: number): number | null {
  if (head.status === 'waiting') return head.waitUntil;
  return head.dueAt !== null && head.dueAt > now ? head.dueAt : now + NOTIFY_GRACE_MS;
}
