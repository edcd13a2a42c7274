import { InvalidInputError, SessionsError } from '../common/sessions.error.js';
import { type IdSource } from './id-source.js';

/** The handler requires a signed-in user (NST-11). HTTP 401. */
export class UnauthenticatedError extends SessionsError {
  static override readonly codes = ['UNAUTHENTICATED'];
  readonly code = 'UNAUTHENTICATED';

  constructor() {
    super('The request has no user. Sign in first.');
  }
}

/** The request has no session id (NST-10). @param source the place where it is expected */
export function missingSessionId(source: IdSource): InvalidInputError {
  const where = typeof source === 'function' ? 'where the application looks for it' : source;
  return new InvalidInputError('sessionId', `is missing. Expected at: ${where}.`, 'SESSION_ID_MISSING');
}
