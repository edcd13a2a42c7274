import { CONVERSATION_NAMESPACE, interruptedMessages, type StepKey, type Turn } from 'nestjs-agent-sessions';
import { appendMessages } from './conversations.js';
import { type Held, watch } from './lane.js';
import { resetSince } from './reset-state.js';
import { type Store } from './store.js';
import { type TurnRow } from './tables.js';

export type CancelMode = NonNullable<Turn['cancelMode']>;

/** Changes fields of a turn; `undefined` removes one. */
export function changeTurn(store: Store, row: TurnRow, fields: Partial<Turn>, waitStep?: StepKey): Turn {
  store.hint(row.turn.id);
  return store.turns.put({ ...row, waitStep, turn: { ...row.turn, ...fields } }).turn;
}

/** @param fields its final status, and what came of it */
export function endTurn(store: Store, row: TurnRow, fields: Partial<Turn>): Turn {
  const over = { cancelMode: undefined, waitingFor: undefined, dueAt: undefined };
  return changeTurn(store, row, { ...over, ...fields, settledAt: store.time() });
}

/** Cancels a turn that has no worker; interrupted, what the user said stays, unless the log was reset since it began. */
export function stopTurn(store: Store, row: TurnRow, mode: CancelMode): Turn {
  const { sessionId, startedAt } = row.turn;
  const lane = store.lanes.get(sessionId);
  const isForgotten = startedAt !== undefined && resetSince(lane, row.epochs, [CONVERSATION_NAMESPACE]).length > 0;
  if (mode === 'interrupt' && !isForgotten) appendMessages(store, sessionId, interruptedMessages(row.turn), row.turn);
  return endTurn(store, row, { status: 'cancelled' });
}

/** Asks the worker of a running turn to stop it. The first mark stays. */
export function markTurn(store: Store, row: TurnRow, mode: CancelMode): Turn {
  return changeTurn(store, row, { cancelMode: row.turn.cancelMode ?? mode });
}

/** A turn that is marked, or whose session is over, gets no further attempt. */
export function isLastAttempt(store: Store, { cancelMode, sessionId }: Turn): boolean {
  return cancelMode !== undefined || store.sessions.get(sessionId)?.state === 'expired';
}

/** Ends the hold without settling the turn: it goes back into the lane, unless this was its last attempt. */
export function putBack(
  store: Store,
  { lane, row }: Held,
  fields: Partial<Turn>,
  { offerAt = store.now, waitStep }: { offerAt?: number; waitStep?: StepKey } = {},
): Turn {
  const last = isLastAttempt(store, row.turn);
  const turn = last ? stopTurn(store, row, row.turn.cancelMode ?? 'cancel') : changeTurn(store, row, fields, waitStep);
  watch(store, { ...lane, running: undefined }, last ? store.now : offerAt);
  return turn;
}

/** Cancels the turns of a lane that nobody runs. @returns how many */
export function cancelParked(store: Store, sessionId: string): number {
  let cancelled = 0;
  for (const row of store.turns.by('open', [sessionId])) {
    if (row.turn.status === 'running') continue;
    stopTurn(store, row, 'cancel');
    cancelled += 1;
  }
  const lane = store.lanes.get(sessionId);
  if (lane && !lane.running) watch(store, lane);
  return cancelled;
}
