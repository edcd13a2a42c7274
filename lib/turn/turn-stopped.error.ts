import { SessionsError } from '../common/sessions.error.js';
import { TurnTimeoutError } from '../ledger/turn.errors.js';
import { attemptMessages } from './attempt.messages.js';

export type StopReason = TurnStoppedError['why'];

/**
 * The reason of `turn.signal` when an attempt is stopped, and the error of calls after its end (DAY-17). After the time
 * limit, the reason is TurnTimeoutError instead.
 */
export class TurnStoppedError extends SessionsError {
  static override readonly codes = ['TURN_STOPPED'];
  readonly code = 'TURN_STOPPED';

  /**
   * @param why the reason. `cancelled` ends the turn. After `shutdown`, another worker retries it. After
   * `awaiting-signal`, it continues when its signal arrives. After `lost`, another worker already has it. `ended`: the
   * handler has returned, and code that it left running uses the turn.
   */
  constructor(readonly why: 'cancelled' | 'shutdown' | 'lost' | 'awaiting-signal' | 'failed' | 'ended') {
    super(attemptMessages.stopped(why));
  }

  /** @internal */
  override get forLog(): string {
    return this.message;
  }
}

/**
 * Returns whether the aborted signal is that of an attempt which has only stopped: the turn is not cancelled, and its
 * next attempt may continue the work.
 */
export function isAttemptedAgain({ reason }: AbortSignal): boolean {
  return (reason instanceof TurnStoppedError && reason.why !== 'cancelled') || reason instanceof TurnTimeoutError;
}
