import { CONVERSATION_NAMESPACE } from '../../ledger/module-namespace.js';
import { type TurnHold } from '../../ledger/turn.store.js';
import { type CancelMode } from '../../ledger/turn.js';
import { type TurnSpending } from '../../ledger/turn-usage.js';
import { interruptedMessages } from '../../ledger/user-message.js';
import { appendMessages } from './conversations.js';
import { resetSince } from './epochs.js';
import { endTurn, held, restLane } from './lane.js';
import { toTurn } from './row-mapping.js';
import { type TurnRow } from './rows.js';
import { recordSpending } from './spending.js';
import { type Transaction } from './tables.js';

/** Asks the worker of a running turn to stop it. The first mark stays. */
export function markTurn(tx: Transaction, turn: TurnRow, mode: CancelMode): TurnRow {
  const marked = { cancelMode: turn.cancelMode ?? mode };
  tx.turns.update(turn.id, marked);
  tx.changed(turn.id);
  return { ...turn, ...marked };
}

export function markRunningTurn(tx: Transaction, sessionId: string, mode: CancelMode): void {
  const runningTurn = tx.lanes.get(sessionId)?.runningTurn ?? null;
  const turn = runningTurn === null ? undefined : tx.turns.get(runningTurn);
  if (turn) markTurn(tx, turn, mode);
}

/** Ends a turn that was asked to stop and that no worker settles; interrupted, what the user said stays (TRN-06). */
export function stopTurn(tx: Transaction, turn: TurnRow, mode: CancelMode): TurnRow {
  const { id: turnId, sessionId, orchestrator } = turn;
  if (mode === 'interrupt' && !isForgotten(tx, turn)) {
    appendMessages(tx, sessionId, interruptedMessages(toTurn(turn)), { turnId, orchestrator });
  }
  return endTurn(tx, turn, 'cancelled');
}

/** The conversation was reset since the turn began. */
function isForgotten(tx: Transaction, turn: TurnRow): boolean {
  const lane = tx.lanes.get(turn.sessionId);
  return lane !== undefined && resetSince(lane, turn, [CONVERSATION_NAMESPACE]).length > 0;
}

/** How a turn that has lost its attempt must end instead of getting another one; null: it may go on. */
export function endBeforeNextAttempt(tx: Transaction, turn: TurnRow): CancelMode | null {
  if (turn.cancelMode !== null) return turn.cancelMode;
  return tx.sessions.get(turn.sessionId)?.state === 'expired' ? 'cancel' : null;
}

/**
 * Puts a held turn back into its lane with a change. One that was asked to stop, or whose session expired, ends instead:
 * back in the lane it would hold up the turn that it was to make room for, or come to life in a session that is over.
 */
export function putBack(
  tx: Transaction,
  hold: TurnHold,
  change: (turn: TurnRow) => Partial<TurnRow>,
  spending?: TurnSpending,
): TurnRow {
  const own = held(tx, hold);
  const turn = recordSpending(tx, own, spending);
  const { lane } = own;
  const mode = endBeforeNextAttempt(tx, turn);
  if (mode !== null) {
    const stopped = stopTurn(tx, turn, mode);
    restLane(tx, hold.sessionId, lane.depth - 1);
    return stopped;
  }
  const changes = change(turn);
  tx.turns.update(turn.id, changes);
  tx.changed(turn.id);
  restLane(tx, hold.sessionId, lane.depth);
  return { ...turn, ...changes };
}
