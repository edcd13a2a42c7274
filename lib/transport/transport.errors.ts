import { SessionsError } from '../common/sessions.error.js';

/** The handler requires a signed-in user (NST-11). HTTP 401. */
export class UnauthenticatedError extends SessionsError {
  readonly code = 'UNAUTHENTICATED';

  constructor() {
    super('The request has no user. Sign in first.');
  }
}

/** The request has no session id (NST-10). HTTP 400. */
export class SessionIdMissingError extends SessionsError {
  readonly code = 'SESSION_ID_MISSING';

  constructor(readonly where: string) {
    super(`Missing session id. Expected at: ${where}.`);
  }
}
