import { type JsonValue } from '../common/json.js';
import { type SessionsError } from '../common/sessions.error.js';
import { type TokenUsage, tokensOf } from '../common/token-usage.js';
import { TurnCancelledError, TurnFailedError, TurnSupersededError } from '../ledger/turn.errors.js';
import { type TerminalTurnStatus, type Turn } from '../ledger/turn.js';

/** The result of a turn for its caller: plain JSON without internals, which can be returned as an HTTP response. */
export interface TurnResult {
  readonly id: string;
  readonly sessionId: string;
  readonly status: 'awaiting-input' | 'completed';
  /** The turn's index in this session and orchestrator, from 0. */
  readonly turnIndex: number;
  readonly reply: string | null;
  readonly data?: JsonValue;
  /** The tokens that models used, over all attempts of the turn (FIX-15); absent if none were counted. */
  readonly usage?: TokenUsage;
}

/** How a turn ended, with or without success. Clients receive it in the `settled` event. */
export interface TurnEnd
  extends Pick<TurnResult, 'id' | 'sessionId' | 'usage'>, Partial<Pick<TurnResult, 'turnIndex' | 'data'>> {
  readonly status: TerminalTurnStatus;
  /** `null` if there is no text; absent unless the turn succeeded. */
  readonly reply?: string | null;
  /** The code of the error that a waiting caller receives; absent if the turn succeeded. */
  readonly code?: string;
  /** The id of the turn that superseded this one. */
  readonly supersededBy?: string;
}

/** The signals that a turn waits for. Clients receive it in the `waiting` event (AIS-07). */
export interface TurnWaiting {
  readonly id: string;
  readonly sessionId: string;
  /** The names of the signals, the one that continues the turn first. */
  readonly signals: readonly string[];
  /** When the wait expires, ISO-8601 by the store's clock. Absent: never. */
  readonly until?: string;
}

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
