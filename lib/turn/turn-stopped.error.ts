import { SessionsError } from '../common/sessions.error.js';

/**
 * Why an attempt was stopped. `cancelled` is the end of its turn; with `shutdown` another worker attempts it again, with `parked`
 * it goes on when its signal comes, and with `lost` it is another worker's already.
 */
export type StopReason = 'cancelled' | 'shutdown' | 'lost' | 'parked' | 'failed';

/** The reason of `turn.signal` when an attempt is stopped; when it takes too long that is TurnTimeoutError. */
export class TurnStoppedError extends SessionsError {
  readonly code = 'TURN_STOPPED';

  constructor(readonly why: StopReason) {
    super(`The turn was stopped: ${why}.`);
  }
}
