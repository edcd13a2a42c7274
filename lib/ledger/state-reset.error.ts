import { SessionsError } from '../common/sessions.error.js';
import { turnMessages } from './turn.messages.js';

/**
 * The turn writes to namespaces that were reset since it began (STA-23). Workers then settle the turn without these
 * writes. Callers of a turn never receive this error.
 */
export class StateResetError extends SessionsError {
  static override readonly codes = ['STATE_RESET'];
  readonly code = 'STATE_RESET';

  constructor(
    readonly sessionId: string,
    readonly namespaces: readonly string[],
  ) {
    super(turnMessages.stateReset(namespaces));
  }
}
