/**
 * Where a session stands. `created`: nobody has spoken yet; `active`: in use; `suspended`: idle for longer than its
 * TTL, the next touch resumes it; `expired`: over for good.
 */
export type SessionState = 'created' | 'active' | 'suspended' | 'expired';

export const SESSION_STATES: readonly SessionState[] = ['created', 'active', 'suspended', 'expired'];

/** All but expired. */
export const LIVE_STATES: readonly SessionState[] = ['created', 'active', 'suspended'];

/** The continuity unit that spans surfaces (SES-01). All times are ISO-8601 UTC with milliseconds. */
export interface Session {
  readonly id: string;
  /** Who speaks. Opaque: not looked up anywhere. */
  readonly userId: string;
  readonly workspaceId?: string;
  readonly state: SessionState;
  readonly createdAt: string;
  /** The last touch; until the first one, `createdAt`. Never goes back. */
  readonly lastActivityAt: string;
  /** When `state` last changed; absent while it never has. */
  readonly stateChangedAt?: string;
  /** In the order in which they were attached. */
  readonly attachedSurfaces: string[];
  /** The application's own JSON, see `updateMetadata`. */
  readonly metadata: Record<string, unknown>;
  /**
   * 1 at creation, one more with every stored change. Sessions of a `SessionStore` always have it; those that a foreign store
   * or a resolver returns may lack it, which counts as 0.
   */
  readonly version?: number;
}

/** A session as it is handed to a store that stamps times itself. */
export interface NewSession {
  readonly id: string;
  readonly userId: string;
  readonly workspaceId?: string;
  readonly attachedSurfaces: string[];
  readonly metadata: Record<string, unknown>;
}

/**
 * What an operation made of a session. After a touch, `previousState` tells a cold start (`created`) from a running and a
 * resumed session (SES-05).
 */
export interface SessionChange {
  readonly session: Session;
  readonly previousState: SessionState;
  /** False when there was nothing to do and nothing was written. */
  readonly changed: boolean;
}

/** What attaching a surface did. */
export interface SurfaceChange extends SessionChange {
  /** The user's other sessions that held the surface and lost it, as they are now. */
  readonly movedFrom: readonly Session[];
  /** The session's own surfaces that it lost to its limit, in the order in which they were attached. */
  readonly detached: readonly string[];
}

/**
 * Who keeps a surface when a second live session of the same user and workspace wants it (SES-07): `move` takes it from
 * the other session, `reject` refuses, `share` lets both have it.
 */
export type SurfacePolicy = 'move' | 'reject' | 'share';

export const SURFACE_POLICIES: readonly SurfacePolicy[] = ['move', 'reject', 'share'];

/**
 * How a session at its limit gets another surface: `detach` detaches the surface that was attached first, `reject`
 * refuses (SurfaceLimitError).
 */
export type SurfaceLimitPolicy = 'detach' | 'reject';

export const SURFACE_LIMIT_POLICIES: readonly SurfaceLimitPolicy[] = ['detach', 'reject'];

/** The rules of surfaces. */
export interface SurfaceRules {
  readonly policy: SurfacePolicy;
  /** Per session. */
  readonly maxSurfaces: number;
  /** What happens to an attach at the limit: the surface that was attached first is detached, or the attach is refused. Default `detach`. */
  readonly onLimit?: SurfaceLimitPolicy;
  /** Sessions past it hold no surface: `reject` takes theirs as `move` does. Left out: no session is. */
  readonly lifetime?: SessionLifetime;
}

/** How long sessions live. */
export interface SessionLifetime {
  /** Milliseconds without activity after which an active session counts as suspended. */
  readonly ttlMs?: number;
  /** Milliseconds without activity after which suspended and never used sessions expire. */
  readonly idleMs?: number;
  /** Milliseconds since creation, whatever the activity (SES-19). */
  readonly maxMs?: number;
}
