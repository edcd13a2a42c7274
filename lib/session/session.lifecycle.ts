import { type JsonObject, stringifyWithin } from '../common/json.js';
import { SessionStateError, SurfaceConflictError, SurfaceLimitError } from './session.errors.js';
import { type NewSession, type Session, type SessionState } from './session.js';

/**
 * The lifecycle of a session as pure functions: each takes the stored session and the store's time and returns the
 * session to store. The same object comes back when there is nothing to change.
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
    attachedSurfaces: draft.attachedSurfaces,
    metadata: draft.metadata,
    version: 1,
  };
}

/** Whether the session's absolute lifetime is over, though nobody has expired it yet (SES-19). */
export function isOverdue(session: Session, now: string, maxMs: number | undefined): boolean {
  return maxMs !== undefined && Date.parse(now) - Date.parse(session.createdAt) > maxMs;
}

/**
 * SES-05: whoever speaks makes the session active; a clock that went back does not turn activity back. A session whose
 * lifetime is over counts as expired; the sweep makes it so.
 */
export function touched(session: Session, now: string, maxLifetimeMs?: number): Session {
  if (session.state === 'expired' || isOverdue(session, now, maxLifetimeMs)) {
    throw new SessionStateError(session.id, 'expired', 'touch');
  }
  const active = session.state === 'active' ? session : inState(session, 'active', now);
  const lastActivityAt = now > session.lastActivityAt ? now : session.lastActivityAt;
  if (active === session && lastActivityAt === session.lastActivityAt) return session;
  return { ...active, lastActivityAt, version: session.version + 1 };
}

/** SES-09: only active sessions fall asleep, and their activity time stays. */
export function suspended(session: Session, now: string): Session {
  return session.state === 'active' ? inState(session, 'suspended', now) : session;
}

/** SES-08 */
export function expired(session: Session, now: string): Session {
  return session.state === 'expired' ? session : inState(session, 'expired', now);
}

/** SES-06, SES-07 */
export function withSurface(session: Session, surfaceId: string, maxSurfaces: number): Session {
  if (session.state === 'expired') throw new SessionStateError(session.id, 'expired', 'attachSurface');
  if (session.attachedSurfaces.includes(surfaceId)) return session;
  if (session.attachedSurfaces.length >= maxSurfaces) throw new SurfaceLimitError(session.id, maxSurfaces);
  return { ...session, attachedSurfaces: [...session.attachedSurfaces, surfaceId], version: session.version + 1 };
}

/** SES-07: refuses surfaces that another session holds. @throws SurfaceConflictError */
export function assertSurfaceFree(sessionId: string, surfaces: readonly string[], holders: readonly Session[]): void {
  const [holder] = holders;
  if (!holder) return;
  const surfaceId = surfaces.find((surface) => holder.attachedSurfaces.includes(surface)) ?? '';
  throw new SurfaceConflictError(sessionId, surfaceId, holder.id);
}

/** SES-06 */
export function withoutSurface(session: Session, surfaceId: string): Session {
  if (!session.attachedSurfaces.includes(surfaceId)) return session;
  const attachedSurfaces = session.attachedSurfaces.filter((id) => id !== surfaceId);
  return { ...session, attachedSurfaces, version: session.version + 1 };
}

/** SES-12: a shallow merge in which `null` removes a key. */
export function withMetadata(session: Session, patch: JsonObject, maxBytes: number): Session {
  // Not by assignment: a key may be named __proto__.
  const merged = new Map(Object.entries(session.metadata));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, value);
  }
  const metadata = Object.fromEntries(merged);
  const text = stringifyWithin(metadata as JsonObject, maxBytes, `The metadata of session ${session.id}`);
  if (text === JSON.stringify(session.metadata)) return session;
  return { ...session, metadata, version: session.version + 1 };
}

function inState(session: Session, state: SessionState, now: string): Session {
  return { ...session, state, stateChangedAt: now, version: session.version + 1 };
}
