import { SessionNotFoundError, SessionStateError } from '../../ledger/session.errors.js';
import { type StateOwnership } from '../../ledger/state.store.js';
import { TurnFencedError } from '../../ledger/turn.errors.js';
import { type LaneMode } from '../../ledger/lane.js';
import { type TurnHold } from '../../ledger/turn.store.js';
import { type SettledTurnStatus } from '../../ledger/turn.js';
import { type LaneRow, type TurnRow } from './rows.js';
import { type Transaction } from './tables.js';

/** How long a rung lane may stay unclaimed before the reconciler rings it again. */
const RING_GRACE_MS = 1000;
/** Whoever took the last offer may be too busy for it, so others must hear of the lane before long. */
const MAX_OFFER_BACKOFF_MS = 5000;

/** Refuses late writes of a session that was erased. @throws SessionNotFoundError */
export function assertNotErased(tx: Transaction, sessionId: string): void {
  if (tx.tombstones.get(sessionId)) throw new SessionNotFoundError(sessionId);
}

/** Refuses late writes of a session's state. @throws SessionNotFoundError, SessionStateError */
export function assertMayWrite(tx: Transaction, sessionId: string, { requireSession = false }: StateOwnership): void {
  assertNotErased(tx, sessionId);
  if (!requireSession) return;
  const session = tx.sessions.get(sessionId);
  if (!session) throw new SessionNotFoundError(sessionId);
  if (session.state === 'expired') throw new SessionStateError(sessionId, 'expired', 'write state');
}

/** The id of the lane that stands for all of them: no session has it. */
export const ALL_LANES = '';

/** An `attentionAt` before that of every lane that waits for a worker. */
export const BEFORE_OTHERS = 0;

export function modeOfAll(tx: Transaction): LaneMode {
  return tx.lanes.get(ALL_LANES)?.mode ?? 'open';
}

/** The lane of a session that is about to get its first turn. */
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

/** Whether an open turn holds its lane: from its first claim on, also while it is queued again (TRN-06). */
export function hasBegun({ startedAt }: TurnRow): boolean {
  return startedAt !== null;
}

/** The lane and the turn that a hold is for. @throws TurnFencedError unless it is still the lane's current one */
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

/** Ends an open turn. The lane is not told: follow with {@link restLane}. */
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
 * Writes a lane that nobody runs: who must look at it, and when, follows from its head.
 * @param depth open turns that remain
 * @returns whether to ring: the head is due now
 */
export function restLane(tx: Transaction, sessionId: string, depth: number): boolean {
  const head = depth > 0 ? tx.turns.head(sessionId) : undefined;
  const attentionAt = head ? attentionOf(head, tx.now) : null;
  tx.lanes.update(sessionId, { depth, runningTurn: null, holder: null, leaseUntil: null, attentionAt, offers: 0 });
  return head !== undefined && isDue(head, tx.now);
}

/** Whether a head that nobody runs can be claimed. */
export function isDue(head: TurnRow, now: number): boolean {
  if (head.status === 'waiting') return head.waitUntil !== null && head.waitUntil <= now;
  return head.dueAt === null || head.dueAt <= now;
}

/** Whether the lane has a turn that is due and that nobody runs. */
export function hasFreeHead(tx: Transaction, sessionId: string): boolean {
  if (tx.lanes.get(sessionId)?.runningTurn !== null) return false;
  const head = tx.turns.head(sessionId);
  return head !== undefined && isDue(head, tx.now);
}

/** Cancels what is queued or waiting; a running turn goes on. @returns how many */
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

/** Lanes to ring, each put off for a while that doubles until somebody claims: a backlog is not rung without end. */
export function offerDueLanes(tx: Transaction, limit: number, includeOffered: boolean): string[] {
  if (modeOfAll(tx) === 'paused') return [];
  const until = tx.now + MAX_OFFER_BACKOFF_MS;
  const lanes = includeOffered ? tx.lanes.dueOrOffered(tx.now, until, limit) : tx.lanes.due(tx.now, limit);
  return lanes.map(({ sessionId, offers, attentionAt, firstAttentionAt }) => {
    const pause = Math.min(RING_GRACE_MS * 2 ** offers, MAX_OFFER_BACKOFF_MS);
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
  return head.dueAt !== null && head.dueAt > now ? head.dueAt : now + RING_GRACE_MS;
}
