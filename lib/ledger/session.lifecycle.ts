import { type JsonObject, stringifyWithin } from '../common/json.js';
import { SessionStateError, SurfaceConflictError, SurfaceLimitError } from './session.errors.js';
import {
  type NewSession,
  type Session,
  type SessionIdentity,
  type SessionLifetime,
  type SessionState,
  type SurfaceRules,
} from './session.js';

/**
 * The lifecycle of a session as pure functions. Each takes the stored session and the store's time, and returns the
 * session to store. If nothing changes, it returns the same object.
 */

export function newSession(draft: NewSession, now: string): Session {
  const { workspaceId } = draft;
  return {
    id: draft.id,
    userId: draft.userId,
    ...(workspaceId === undefined ? {} : { workspaceId }),
    state: 'created',
    createdAt: now,
    lastActivityAt: now,
    attachedSurfaces: [...draft.attachedSurfaces],
    metadata: draft.metadata,
    version: 1,
  };
}

/** Returns whether the session is past its lifetime but not expired yet (SES-19). */
export function isOverdue(session: Session, now: string, maxMs: number | undefined): boolean {
  return maxMs !== undefined && Date.parse(now) - Date.parse(session.createdAt) > maxMs;
}

/**
 * Returns the session as a sweep at that time would leave it: suspended if it was active and idle for longer than its
 * TTL (FIX-44).
 */
export function asSwept(session: Session, now: string, ttlMs: number | undefined): Session {
  return session.state === 'active' && idleMsOf(session, now) > (ttlMs ?? Infinity)
    ? { ...session, state: 'suspended' }
    : session;
}

/**
 * Returns whether the session no longer holds its surfaces (FIX-44): it is expired or past its lifetime, or a sweep at
 * that time would expire it because it is idle.
 */
export function isAbandoned(session: Session, now: string, lifetime: SessionLifetime = {}): boolean {
  const { ttlMs = Infinity, idleMs = Infinity, maxMs } = lifetime;
  if (session.state === 'expired' || isOverdue(session, now, maxMs)) return true;
  return idleMsOf(session, now) > (session.state === 'active' ? Math.max(ttlMs, idleMs) : idleMs);
}

/**
 * Activates the session (SES-05). Activity never moves back if the clock does. A session past its lifetime counts as
 * expired, even before the sweep. Pass the session through {@link asSwept} first.
 */
export function touched(session: Session, now: string, maxLifetimeMs?: number): Session {
  if (session.state === 'expired' || isOverdue(session, now, maxLifetimeMs)) {
    throw new SessionStateError(session.id, 'expired', 'touch');
  }
  const active = session.state === 'active' ? session : inState(session, 'active', now);
  const lastActivityAt = now > session.lastActivityAt ? now : session.lastActivityAt;
  if (active === session && lastActivityAt === session.lastActivityAt) return session;
  return { ...active, lastActivityAt, version: versionAfter(session) };
}

/** Suspends the session if it is active, and keeps its activity time (SES-09). */
export function suspended(session: Session, now: string): Session {
  return session.state === 'active' ? inState(session, 'suspended', now) : session;
}

/** Expires the session (SES-08). */
export function expired(session: Session, now: string): Session {
  return session.state === 'expired' ? session : inState(session, 'expired', now);
}

/** Attaches a surface (SES-06, SES-07, FIX-45). */
export function withSurface(session: Session, surfaceId: string, now: string, rules: SurfaceRules): Session {
  const { attachedSurfaces, id } = session;
  const { maxSurfaces, onLimit, lifetime } = rules;
  if (session.state === 'expired' || isOverdue(session, now, lifetime?.maxMs)) {
    throw new SessionStateError(id, 'expired', 'attachSurface');
  }
  if (attachedSurfaces.includes(surfaceId)) return session;
  if (attachedSurfaces.length >= maxSurfaces && onLimit === 'reject') throw new SurfaceLimitError(id, maxSurfaces);
  const kept = attachedSurfaces.slice(Math.max(0, attachedSurfaces.length + 1 - maxSurfaces));
  return { ...session, attachedSurfaces: [...kept, surfaceId], version: versionAfter(session) };
}

/** Returns the surfaces that a change detached from the session. */
export function detachedSurfaces(before: Session, after: Session): string[] {
  return before.attachedSurfaces.filter((surface) => !after.attachedSurfaces.includes(surface));
}

/** Rejects surfaces that another session holds (SES-07). @throws SurfaceConflictError */
export function assertSurfaceFree(sessionId: string, surfaces: readonly string[], holders: readonly Session[]): void {
  const [holder] = holders;
  if (!holder) return;
  const surfaceId = surfaces.find((surface) => holder.attachedSurfaces.includes(surface)) ?? '';
  throw new SurfaceConflictError(sessionId, surfaceId, holder.id);
}

/** Detaches a surface (SES-06). */
export function withoutSurface(session: Session, surfaceId: string): Session {
  if (!session.attachedSurfaces.includes(surfaceId)) return session;
  const attachedSurfaces = session.attachedSurfaces.filter((id) => id !== surfaceId);
  return { ...session, attachedSurfaces, version: versionAfter(session) };
}

/** Returns false if another session had the same id before or after (FIX-90). */
export function isSameSession(session: Session, { createdAt, userId }: SessionIdentity): boolean {
  // The same instant: a table of the application may write it in several formats.
  return Date.parse(session.createdAt) === Date.parse(createdAt) && session.userId === userId;
}

/** Merges metadata shallowly; `null` removes a key (SES-12). @throws TooLargeError */
export function withMetadata(session: Session, patch: JsonObject, maxBytes: number): Session {
  // A Map, because a key may be named __proto__.
  const merged = new Map(Object.entries(session.metadata));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, value);
  }
  const metadata = Object.fromEntries(merged);
  const text = stringifyWithin(metadata as JsonObject, maxBytes, `The metadata of session ${session.id}`);
  if (text === JSON.stringify(session.metadata)) return session;
  return { ...session, metadata, version: versionAfter(session) };
}

function idleMsOf({ lastActivityAt }: Session, now: string): number {
  return Date.parse(now) - Date.parse(lastActivityAt);
}

function inState(session: Session, state: SessionState, now: string): Session {
  return { ...session, state, stateChangedAt: now, version: versionAfter(session) };
}

function versionAfter({ version = 0 }: Session): number {
  return version + 1;
}
