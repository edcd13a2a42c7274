import { SessionsError } from '../common/sessions.error.js';

export type StopReason = TurnStoppedError['why'];

const REASONS: Readonly<Record<StopReason, string>> = {
  cancelled: 'the turn was cancelled. The handler can return: its result is not used.',
  shutdown:
    'this process is stopping, and another worker continues the turn. The handler can return: its result is not used.',
  lost: 'another worker has the turn, or the store did not answer in time. The handler can return: its result is not used.',
  'awaiting-signal':
    'the turn waits for a signal, and a later attempt continues it. Work that still runs can end: its result is not used.',
  failed: 'it has failed. Work that still runs can end: its result is not used.',
  ended: 'its handler has returned. Await every call of the turn before the handler returns.',
};

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
    super(`The attempt is over: ${REASONS[why]}`);
  }

  /** @internal */
  override get forLog(): string {
    return this.message;
  }
}
