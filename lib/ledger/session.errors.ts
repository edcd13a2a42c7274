import { HttpStatus } from '@nestjs/common';
import { SessionsError } from '../common/sessions.error.js';
import { type SessionState } from './session.js';

/** The session does not exist. HTTP 404. */
export class SessionNotFoundError extends SessionsError {
  static override readonly codes = ['SESSION_NOT_FOUND'];
  readonly code = 'SESSION_NOT_FOUND';

  constructor(readonly sessionId: string) {
    super(`Session not found: ${sessionId}`);
  }
}

/**
 * A session with this id exists, or existed and was erased (`SESSION_CONFLICT`), or it has messages or turns, so that a fork cannot
 * write to it (`SESSION_NOT_EMPTY`). HTTP 409. The stored one is untouched.
 */
export class SessionConflictError extends SessionsError {
  static override readonly codes = ['SESSION_CONFLICT', 'SESSION_NOT_EMPTY'] as const;

  /** True if a retry of the turn cannot succeed: for `SESSION_NOT_EMPTY`. */
  readonly permanent: boolean;

  constructor(
    readonly sessionId: string,
    readonly code: (typeof SessionConflictError.codes)[number] = 'SESSION_CONFLICT',
  ) {
    super(
      code === 'SESSION_NOT_EMPTY'
        ? `Session ${sessionId} is already in use. Fork into a new session: omit newSessionId, or pass an unused id.`
        : `Session already exists: ${sessionId}`,
    );
    this.permanent = code === 'SESSION_NOT_EMPTY';
  }
}

/** The state of the session does not allow the operation. HTTP 410 if it is expired, else 409. */
export class SessionStateError extends SessionsError {
  static override readonly codes = ['SESSION_STATE'];
  readonly code = 'SESSION_STATE';

  constructor(
    readonly sessionId: string,
    readonly currentState: SessionState,
    readonly attemptedTransition: string,
  ) {
    super(`Invalid transition '${attemptedTransition}' from state '${currentState}' for session ${sessionId}`);
  }

  override getStatus(): number {
    return this.currentState === 'expired' ? HttpStatus.GONE : super.getStatus();
  }
}

/** The surface is attached to another live session of the same user and workspace, and the policy is `reject` (SES-07). HTTP 409. */
export class SurfaceConflictError extends SessionsError {
  static override readonly codes = ['SURFACE_CONFLICT'];
  readonly code = 'SURFACE_CONFLICT';

  constructor(
    readonly sessionId: string,
    readonly surfaceId: string,
    /** The id of the session with the surface. */
    readonly heldBy: string,
  ) {
    super(`Surface ${surfaceId} is attached to session ${heldBy} of the same user. Detach it from that session first.`);
  }
}

/** The session already has `maxSurfacesPerSession` surfaces, and `onSurfaceLimit` is `reject`. HTTP 409. */
export class SurfaceLimitError extends SessionsError {
  static override readonly codes = ['SURFACE_LIMIT'];
  readonly code = 'SURFACE_LIMIT';

  constructor(
    readonly sessionId: string,
    readonly limit: number,
  ) {
    super(`Session ${sessionId} already has ${limit} surfaces, the maximum. Detach one first.`);
  }
}
