import { SessionsError } from '../common/sessions.error.js';

/**
 * Why an attempt was stopped. `cancelled` ends its turn. After `shutdown`, another worker retries it. After
 * `awaiting-signal`, it continues when its signal arrives. After `lost`, another worker already has it.
 */
export type StopReason = 'cancelled' | 'shutdown' | 'lost' | 'awaiting-signal' | 'failed';

/**
 * The reason of `turn.signal` when an attempt is stopped. After the time limit, the reason is TurnTimeoutError instead.
 */
export class TurnStoppedError extends SessionsError {
  readonly code = 'TURN_STOPPED';

  constructor(readonly why: StopReason) {
    super(`The turn was stopped: ${why}.`);
  }
}
