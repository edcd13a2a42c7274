import { SessionsError } from '../common/sessions.error.js';
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
