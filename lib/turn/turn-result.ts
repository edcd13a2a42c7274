import { type JsonValue } from '../common/json.js';
import { TurnCancelledError, TurnFailedError, TurnSupersededError } from './turn.errors.js';
import { type Turn } from './turn.js';

/** What the caller of a turn gets: plain JSON without internals, fit to be an HTTP response as it is. */
export interface TurnResult {
  readonly id: string;
  readonly sessionId: string;
  readonly status: 'awaiting-input' | 'completed';
  /** The turn's number in this session and orchestrator, from 0. */
  readonly turnIndex: number;
  readonly reply: string | null;
  readonly data?: JsonValue;
}

/** @throws TurnFailedError, TurnCancelledError, TurnSupersededError for a turn that ended without a result */
export function toTurnResult(turn: Turn): TurnResult {
  switch (turn.status) {
    case 'awaiting-input':
    case 'completed':
      return {
        id: turn.id,
        sessionId: turn.sessionId,
        status: turn.status,
        turnIndex: turn.turnIndex ?? 0,
        reply: turn.reply?.text ?? null,
        ...(turn.reply?.data === undefined ? {} : { data: turn.reply.data }),
      };
    case 'superseded':
      throw new TurnSupersededError(turn.sessionId, turn.id, turn.supersededBy ?? '');
    case 'cancelled':
      throw new TurnCancelledError(turn.sessionId, turn.id);
    default:
      throw new TurnFailedError(turn);
  }
}
