/**
 * The state of a session. `created`: not used yet; `active`: in use; `suspended`: idle for longer than its TTL, the next touch
 * resumes it; `expired`: ended permanently.
 */
export type SessionState = 'created' | 'active' | 'suspended' | 'expired';

export const SESSION_STATES: readonly SessionState[] = ['created', 'active', 'suspended', 'expired'];

/** All states except `expired`. */
export const LIVE_STATES: readonly SessionState[] = ['created', 'active', 'suspended'];

/** The continuity unit that spans surfaces (SES-01). All times are ISO-8601 UTC with milliseconds. */
export interface Session {
  readonly id: string;
  /** The user of the session. Opaque: it is not looked up. */
  readonly userId: string;
  readonly workspaceId?: string;
  readonly state: SessionState;
  readonly createdAt: string;
  /** Time of the last touch, initially `createdAt`. Never decreases. */
  readonly lastActivityAt: string;
  /** Time of the last change of `state`. Absent if it never changed. */
  readonly stateChangedAt?: string;
  /** Attached surfaces, in order of attachment. */
  readonly attachedSurfaces: string[];
  /** JSON of the application, see `updateMetadata`. */
  readonly metadata: Record<string, unknown>;
  /**
   * Starts at 1 and increases by one with every stored change. Always present in sessions of a `SessionStore`. An external store or a
   * resolver may omit it, which counts as 0.
   */
  readonly version?: number;
}

/** What tells a session from an earlier or later one with the same id (FIX-90). */
export type SessionIdentity = Pick<Session, 'createdAt' | 'userId'>;

/** Returns the id of a session, and the fields that distinguish it from earlier and later sessions with that id. */
export function identityOf({ id, createdAt, userId }: Session): Pick<Session, 'id'> & SessionIdentity {
  return { id, createdAt, userId };
}

/** A new session for a store that sets its times. */
export interface NewSession {
  readonly id: string;
  readonly userId: string;
  readonly workspaceId?: string;
  readonly attachedSurfaces: string[];
  readonly metadata: Record<string, unknown>;
}

/**
 * The result of an operation on a session. After a touch, `previousState` distinguishes a cold start (`created`), a running and a
 * resumed session (SES-05).
 */
export interface SessionChange {
  readonly session: Session;
  readonly previousState: SessionState;
  /** False if the operation had no effect and wrote nothing. */
  readonly changed: boolean;
}

/** The result of attaching a surface. */
export interface SurfaceChange extends SessionChange {
  /** The user's other sessions from which the surface was detached, in their new state. */
  readonly movedFrom: readonly Session[];
  /** Surfaces of the session that were detached because of its limit, in order of attachment. */
  readonly detached: readonly string[];
}

/**
 * How to handle a surface that a second live session of the same user and workspace attaches (SES-07): `move` detaches it from the
 * first session, `reject` throws SurfaceConflictError, `share` attaches it to both.
 */
export type SurfacePolicy = 'move' | 'reject' | 'share';

export const SURFACE_POLICIES: readonly SurfacePolicy[] = ['move', 'reject', 'share'];

/**
 * How to attach a surface to a session at its limit: `detach` detaches the oldest attachment, `reject` throws SurfaceLimitError.
 */
export type SurfaceLimitPolicy = 'detach' | 'reject';

export const SURFACE_LIMIT_POLICIES: readonly SurfaceLimitPolicy[] = ['detach', 'reject'];

/** The rules of surfaces. */
export interface SurfaceRules {
  readonly policy: SurfacePolicy;
  /** Maximum number of surfaces per session. */
  readonly maxSurfaces: number;
  /** Whether an attach at the limit detaches the oldest attachment or is rejected. Default `detach`. */
  readonly onLimit?: SurfaceLimitPolicy;
  /** Sessions past their lifetime hold no surface: even `reject` detaches theirs, like `move`. Default: no lifetime. */
  readonly lifetime?: SessionLifetime;
}

/** The lifetime of sessions. */
export interface SessionLifetime {
  /** Milliseconds without activity after which an active session counts as suspended. */
  readonly ttlMs?: number;
  /** Milliseconds without activity after which suspended and never used sessions expire. */
  readonly idleMs?: number;
  /** Milliseconds since creation, whatever the activity (SES-19). */
  readonly maxMs?: number;
}
