import { type SessionsError } from '../common/sessions.error.js';
import { tokensOf } from '../common/token-counts.js';
import { TurnCancelledError, TurnFailedError, TurnSupersededError } from '../ledger/turn.errors.js';
import { type TerminalTurnStatus, type Turn } from '../ledger/turn.js';
import { type TurnEnd, type TurnResult, type TurnWaiting } from './turn-result.js';

/** @param turn a turn with the status `waiting` */
export function toTurnWaiting({ id, sessionId, waitingFor }: Turn): TurnWaiting {
  const { signal, others = [], until } = waitingFor ?? { signal: '' };
  return { id, sessionId, signals: [signal, ...others], ...(until === undefined ? {} : { until }) };
}

/** Recreates the typed error from a failed turn's record; `undefined` makes callers receive TurnFailedError. */
export type FailureReader = (turn: Turn) => SessionsError | undefined;

/**
 * @throws TurnCancelledError, TurnSupersededError, TurnFailedError, or the typed error, if the turn ended without a
 * result
 */
export function toTurnResult(turn: Turn, readFailure: FailureReader): TurnResult {
  const { id, sessionId, status, turnIndex = 0, reply } = turn;
  if (status !== 'awaiting-input' && status !== 'completed') throw errorOf(turn, readFailure);
  return {
    id,
    sessionId,
    status,
    turnIndex,
    reply: reply?.text ?? null,
    ...(reply?.data === undefined ? {} : { data: reply.data }),
    ...usageOf(turn),
  };
}

/** @param turn a turn that has ended */
export function toTurnEnd(turn: Turn, readFailure: FailureReader): TurnEnd {
  const { id, sessionId, supersededBy } = turn;
  const status = turn.status as TerminalTurnStatus;
  if (status === 'awaiting-input' || status === 'completed') return toTurnResult(turn, readFailure);
  const { code } = errorOf(turn, readFailure);
  return { id, sessionId, status, code, ...(supersededBy === undefined ? {} : { supersededBy }), ...usageOf(turn) };
}

function usageOf({ usage }: Turn): Pick<TurnResult, 'usage'> {
  return usage ? { usage: tokensOf(usage) } : {};
}

function errorOf(turn: Turn, readFailure: FailureReader): SessionsError {
  switch (turn.status) {
    case 'superseded':
      return new TurnSupersededError(turn.sessionId, turn.id, turn.supersededBy ?? '');
    case 'cancelled':
      return new TurnCancelledError(turn.sessionId, turn.id);
    default:
      return readFailure(turn) ?? new TurnFailedError(turn);
  }
}
