import { isTerminal, type Turn, type TurnInput } from '../../ledger/turn.js';
import { type TurnEnd } from '../../turn/turn-result.js';

/** A turn as its user sees it. After its end it includes the fields of the `settled` event. */
export interface TurnView
  extends
    Pick<Turn, 'id' | 'sessionId' | 'position' | 'orchestrator' | 'status' | 'acceptedAt' | 'startedAt' | 'settledAt'>,
    Omit<TurnEnd, 'id' | 'sessionId' | 'status'> {
  /**
   * The message of the user, or the prompt that the application submitted, with all its metadata. Absent if the turn is
   * a command, such as an undo.
   */
  readonly input?: TurnInput;
  /** Set while the turn is waiting. */
  readonly waitingFor?: { readonly signal: string };
}

/** @param endOf returns how a turn has ended */
export function toTurnView(turn: Turn, endOf: (turn: Turn) => TurnEnd): TurnView {
  const { id, sessionId, position, orchestrator, status, acceptedAt, startedAt, settledAt, waitingFor, request } = turn;
  return {
    id,
    sessionId,
    position,
    orchestrator,
    status,
    ...(request.command ? {} : { input: request.input }),
    acceptedAt,
    ...(startedAt === undefined ? {} : { startedAt }),
    ...(settledAt === undefined ? {} : { settledAt }),
    ...(waitingFor === undefined ? {} : { waitingFor: { signal: waitingFor.signal } }),
    ...(isTerminal(status) ? endOf(turn) : {}),
  };
}
