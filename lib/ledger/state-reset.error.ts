import { SessionsError } from '../common/sessions.error.js';

/**
 * What a turn was to write belongs to an epoch that is over: these namespaces were reset since it began (STA-23). Seen by workers,
 * which settle the turn without it, never by callers of a turn.
 */
export class StateResetError extends SessionsError {
  readonly code = 'STATE_RESET';

  constructor(
    readonly sessionId: string,
    readonly namespaces: readonly string[],
  ) {
    super(`State was reset since the turn began: ${namespaces.join(', ')}; nothing was written.`);
  }
}
