import { SessionsError } from '../common/sessions.error.js';

/** Others changed the state every time this one tried to (ORC-05). HTTP 409. Nothing was changed. */
export class StateConflictError extends SessionsError {
  readonly code = 'STATE_CONFLICT';

  constructor(
    readonly sessionId: string,
    readonly attempts: number,
  ) {
    super(`The state was changed by others during each of ${attempts} attempts to change it.`);
  }
}
