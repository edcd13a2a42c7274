import { type FailureReader, toTurnEnd, type TurnEnd } from '../../turn/turn-result.js';
import { isTerminal, type Turn } from '../../ledger/turn.js';

/** What the user sees of a turn: once it is over, what its `settled` event says as well. */
export interface TurnView
  extends
    Pick<Turn, 'id' | 'sessionId' | 'position' | 'orchestrator' | 'status' | 'acceptedAt' | 'startedAt' | 'settledAt'>,
    Omit<TurnEnd, 'id' | 'sessionId' | 'status'> {
  /** On waiting turns. */
  readonly waitingFor?: { readonly signal: string };
}

export function toTurnView(turn: Turn, readFailure: FailureReader): TurnView {
  const { id, sessionId, position, orchestrator, status, acceptedAt, startedAt, settledAt, waitingFor } = turn;
  return {
    id,
    sessionId,
    position,
    orchestrator,
    status,
    acceptedAt,
    ...(startedAt === undefined ? {} : { startedAt }),
    ...(settledAt === undefined ? {} : { settledAt }),
    ...(waitingFor === undefined ? {} : { waitingFor: { signal: waitingFor.signal } }),
    ...(isTerminal(status) ? toTurnEnd(turn, readFailure) : {}),
  };
}
