import { SessionsError } from '../common/sessions.error.js';
import { type SessionState } from './session.js';

/** No session has this id. HTTP 404. */
export class SessionNotFoundError extends SessionsError {
  readonly code = 'SESSION_NOT_FOUND';

  constructor(readonly sessionId: string) {
    super(`Session not found: ${sessionId}`);
  }
}

/** A session with this id exists, or existed and was erased. HTTP 409. The stored one is untouched. */
export class SessionConflictError extends SessionsError {
  readonly code = 'SESSION_CONFLICT';

  constructor(readonly sessionId: string) {
    super(`Session already exists: ${sessionId}`);
  }
}

/** The session's state does not allow this. HTTP 410 when it is expired, else 409. */
export class SessionStateError extends SessionsError {
  readonly code = 'SESSION_STATE';

  constructor(
    readonly sessionId: string,
    readonly currentState: SessionState,
    readonly attemptedTransition: string,
  ) {
    super(`Invalid transition '${attemptedTransition}' from state '${currentState}' for session ${sessionId}`);
  }
}

/** Another live session of the same user and workspace holds the surface, and the policy is to refuse (SES-07). HTTP 409. */
export class SurfaceConflictError extends SessionsError {
  readonly code = 'SURFACE_CONFLICT';

  constructor(
    readonly sessionId: string,
    readonly surfaceId: string,
    /** The session that holds it. */
    readonly heldBy: string,
  ) {
    super(`Surface ${surfaceId} is held by session ${heldBy} of the same user. Detach it there first.`);
  }
}

/** The session holds as many surfaces as `maxSurfacesPerSession` allows, and `onSurfaceLimit` is `reject`. HTTP 409. */
export class SurfaceLimitError extends SessionsError {
  readonly code = 'SURFACE_LIMIT';

  constructor(
    readonly sessionId: string,
    readonly limit: number,
  ) {
    super(`Session ${sessionId} already has ${limit} surfaces, which is the most allowed. Detach one first.`);
  }
}
