import { type JsonValue } from '../common/json.js';
import { type SessionsError } from '../common/sessions.error.js';
import { type TokenUsage, tokensOf } from '../common/token-usage.js';
import { TurnCancelledError, TurnFailedError, TurnSupersededError } from '../ledger/turn.errors.js';
import { type TerminalTurnStatus, type Turn } from '../ledger/turn.js';

/** What the caller of a turn gets: plain JSON without internals, fit to be an HTTP response as it is. */
export interface TurnResult {
  readonly id: string;
  readonly sessionId: string;
  readonly status: 'awaiting-input' | 'completed';
  /** The turn's number in this session and orchestrator, from 0. */
  readonly turnIndex: number;
  readonly reply: string | null;
  readonly data?: JsonValue;
  /** The tokens that models took, over all attempts of the turn (FIX-15); absent when no model was counted. */
  readonly usage?: TokenUsage;
}

/** How a turn ended, however it did: what clients are told in its `settled` event. */
export interface TurnEnd
  extends Pick<TurnResult, 'id' | 'sessionId' | 'usage'>, Partial<Pick<TurnResult, 'turnIndex' | 'data'>> {
  readonly status: TerminalTurnStatus;
  /** `null` without an answer in text; absent unless the turn succeeded. */
  readonly reply?: string | null;
  /** Of the error that a caller who waits gets; absent when the turn succeeded. */
  readonly code?: string;
  /** On superseded turns: the turn that took its place. */
  readonly supersededBy?: string;
}

/** The typed error that a failed turn's record stands for; `undefined`: callers get TurnFailedError. */
export type FailureReader = (turn: Turn) => SessionsError | undefined;

/** @throws TurnCancelledError, TurnSupersededError, TurnFailedError, or the typed failure, for a turn that ended without a result */
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

/** @param turn that is over */
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
