import { type Turn, TurnFencedError, type TurnHold, userMessage } from 'nestjs-agent-sessions';
import { appendMessages } from './conversations.js';
import { type Store } from './store.js';
import { type LaneRow, ms, type TurnRow } from './tables.js';

export type CancelMode = NonNullable<Turn['cancelMode']>;

/** How long a lane whose ring was lost waits until it is offered. */
const LOST_RING_MS = 1000;

export function headOf(store: Store, sessionId: string): TurnRow | undefined {
  return store.turns.first('open', [sessionId]);
}

/** Whether it waits for nothing but a worker. */
export function isDue(store: Store, turn: Turn | undefined): boolean {
  return turn?.status === 'queued' && (turn.dueAt === undefined || ms(turn.dueAt) <= store.now);
}

/**
 * Stores the lane, and when somebody must look at it next.
 * @param offerAt when a head that is due is offered; default: a while after the caller's ring
 * @returns whether the head is due and nobody runs it: ring
 */
export function watch(store: Store, lane: LaneRow, offerAt = store.now + LOST_RING_MS): boolean {
  const head = headOf(store, lane.sessionId)?.turn;
  const due = isDue(store, head);
  store.lanes.put({ ...lane, attentionAt: due ? offerAt : attentionTime(head, lane) });
  return due;
}

function attentionTime(head: Turn | undefined, { running }: LaneRow): number | undefined {
  if (head?.status === 'running') return running?.leaseEnd;
  const time = head?.status === 'waiting' ? head.waitingFor?.until : head?.dueAt;
  return time === undefined ? undefined : ms(time);
}

/** The turn that the hold is for, and its lane. @throws TurnFencedError when the hold is over */
export function held(store: Store, { sessionId, turnId, fence }: TurnHold): { lane: LaneRow; row: TurnRow } {
  const lane = store.lanes.get(sessionId);
  const row = store.turns.get(turnId);
  if (!lane || !row || lane.running?.turnId !== turnId || lane.fence !== fence) {
    throw new TurnFencedError(sessionId, turnId, fence);
  }
  return { lane, row };
}

/** Changes fields of a turn; `undefined` removes one. */
export function changeTurn(store: Store, row: TurnRow, fields: Partial<Turn>, rest: Partial<TurnRow> = {}): Turn {
  return store.turns.put({ ...row, waitStep: undefined, ...rest, turn: { ...row.turn, ...fields } }).turn;
}

export function endTurn(
  store: Store,
  row: TurnRow,
  fields: Partial<Turn> & Pick<Turn, 'status'>,
  settledWith?: number,
): Turn {
  store.hint(row.turn.id);
  const over = { cancelMode: undefined, waitingFor: undefined, dueAt: undefined, error: undefined };
  return changeTurn(store, row, { ...over, ...fields, settledAt: store.time() }, { settledWith });
}

/** Ends a turn that has no worker. */
export function stopTurn(store: Store, row: TurnRow, mode: CancelMode): Turn {
  const { sessionId, status } = row.turn;
  if (mode === 'interrupt' && status !== 'queued') appendMessages(store, sessionId, [userMessage(row.turn)], row.turn);
  return endTurn(store, row, { status: 'cancelled' });
}

export function markTurn(store: Store, row: TurnRow, mode: CancelMode): Turn {
  store.hint(row.turn.id);
  return changeTurn(store, row, { cancelMode: row.turn.cancelMode ?? mode });
}

/** A turn that is marked, or whose session is over, gets no further attempt. */
export function isLastAttempt(store: Store, { cancelMode, sessionId }: Turn): boolean {
  return cancelMode !== undefined || store.sessions.get(sessionId)?.state === 'expired';
}

/** Cancels the turns of an expired session that nobody runs. */
export function cancelParked(store: Store, sessionId: string): void {
  for (const row of store.turns.by('open', [sessionId])) {
    if (row.turn.status !== 'running') stopTurn(store, row, 'cancel');
  }
  const lane = store.lanes.get(sessionId);
  if (lane && !lane.running) watch(store, lane);
}
