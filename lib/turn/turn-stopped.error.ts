import { SessionsError } from '../common/sessions.error.js';

/** Why an attempt was stopped; only `cancelled` is the end of its turn. */
export type StopReason = 'cancelled' | 'shutdown' | 'lost' | 'parked' | 'failed';

/** The reason of an attempt's AbortSignal. */
export class TurnStoppedError extends SessionsError {
  readonly code = 'TURN_STOPPED';

  constructor(readonly why: StopReason) {
    super(`The turn was stopped: ${why}.`);
  }
}
