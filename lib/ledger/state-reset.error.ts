import { SessionsError } from '../common/sessions.error.js';

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
    super(
      `State was reset since the turn began: ${namespaces.join(', ')}. Nothing was written. ` +
        'Settle the turn without these writes.',
    );
  }
}
