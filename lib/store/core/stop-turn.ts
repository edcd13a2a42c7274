import { CONVERSATION_NAMESPACE } from '../../ledger/namespaces.js';
import { type NewMessage } from '../../ledger/conversation.store.js';
import { type TurnHold } from '../../ledger/turn.store.js';
import { type CancelMode } from '../../ledger/turn.js';
import { type TurnSpending } from '../../ledger/turn-usage.js';
import { interruptedMessages } from '../../ledger/user-message.js';
import { appendMessages } from './conversations.js';
import { resetSince } from './epochs.js';
import { endTurn, held, restLane } from './lane.js';
import { keepText, toTurn } from './row-mapping.js';
import { type TurnRow } from './rows.js';
import { recordSpending } from './spending.js';
import { type Transaction } from './tables.js';

/** Marks a running turn, so that its worker stops it. An existing mark is kept. */
export function markTurn(tx: Transaction, turn: TurnRow, mode: CancelMode, keep?: readonly NewMessage[]): TurnRow {
  if (turn.cancelMode !== null) return turn;
  const marked = { cancelMode: mode, keep: keepText(keep) };
  tx.turns.update(turn.id, marked);
  tx.changed(turn.id);
  return { ...turn, ...marked };
}

export function markRunningTurn(tx: Transaction, sessionId: string, mode: CancelMode): void {
  const runningTurn = tx.lanes.get(sessionId)?.runningTurn ?? null;
  const turn = runningTurn === null ? undefined : tx.turns.get(runningTurn);
  if (turn) markTurn(tx, turn, mode);
}

/** Ends a turn that was asked to stop and has no worker. Interrupting it keeps the user's message (TRN-06). */
export function stopTurn(tx: Transaction, turn: TurnRow, mode: CancelMode): TurnRow {
  const { id: turnId, sessionId, orchestrator } = turn;
  if (mode === 'interrupt' && !wasConversationReset(tx, turn)) {
    const kept = interruptedMessages(toTurn(turn));
    appendMessages(tx, sessionId, kept, { turnId, orchestrator });
  }
  return endTurn(tx, turn, 'cancelled');
}

/** Returns whether the conversation was reset after the turn started. */
function wasConversationReset(tx: Transaction, turn: TurnRow): boolean {
  const lane = tx.lanes.get(turn.sessionId);
  return lane !== undefined && resetSince(lane, turn, [CONVERSATION_NAMESPACE]).length > 0;
}

/** Returns how a turn without an attempt must end, or null if it may have another attempt. */
export function endBeforeNextAttempt(tx: Transaction, turn: TurnRow): CancelMode | null {
  if (turn.cancelMode !== null) return turn.cancelMode;
  return tx.sessions.get(turn.sessionId)?.state === 'expired' ? 'cancel' : null;
}

/**
 * Returns a held turn to its lane with a change. If the turn was asked to stop, or its session expired, it ends instead.
 * In the lane, it would block the turn that replaces it, or run in a session that has ended.
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
