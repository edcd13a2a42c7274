import { SessionsError } from '../common/sessions.error.js';

/** The handler needs a signed-in user, and nobody is (NST-11). HTTP 401. */
export class UnauthenticatedError extends SessionsError {
  readonly code = 'UNAUTHENTICATED';

  constructor() {
    super('Sign in first: the request has no user.');
  }
}

/** The request names no session (NST-10). HTTP 400. */
export class SessionIdMissingError extends SessionsError {
  readonly code = 'SESSION_ID_MISSING';

  constructor(readonly where: string) {
    super(`The request names no session. Expected at: ${where}.`);
  }
}
