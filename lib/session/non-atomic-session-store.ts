import { Logger } from '@nestjs/common';
import { loggedId } from '../common/log-details.js';
import { traceOf } from '../common/error-trace.js';
import { type JsonObject } from '../common/json.js';
import { Serializer } from '../common/serializer.js';
import { type SessionQuery } from '../ledger/session-query.js';
import { compareSessions, decodeCursor } from '../ledger/session.cursor.js';
import { SessionConflictError, SessionNotFoundError } from '../ledger/session.errors.js';
import {
  LIVE_STATES,
  type NewSession,
  type Session,
  type SessionChange,
  type SessionIdentity,
  type SessionLifetime,
  type SurfaceChange,
  type SurfaceRules,
} from '../ledger/session.js';
import {
  assertSurfaceFree,
  asSwept,
  detachedSurfaces,
  expired,
  isAbandoned,
  isOverdue,
  isSameSession,
  newSession,
  suspended,
  touched,
  withMetadata,
  withoutSurface,
  withSurface,
} from '../ledger/session.lifecycle.js';
import {
  type AtomicSessionStoreAdapter,
  type CreatedSession,
  type SessionStoreAdapter,
} from '../ledger/session.store.js';
import { sessionMessages } from './session.messages.js';

/** The highest limit that every database accepts. */
const ALL = 2_147_483_647;
const DEFAULT_LIMIT = 50;

/** Serializers by adapter, because several stores of a process may share one adapter. */
const serializers = new WeakMap<SessionStoreAdapter, Serializer>();

/**
 * Implements the atomic interface over an external store that has only the five basic methods (SES-15): reads, changes
 * and writes, by this process's clock. Changes of one session, and of one user's surfaces, run one after another in
 * this process. A concurrent change by another process can be lost.
 *
 * It requires little: the store may return sessions in any order and without a version, and may ignore conditions.
 */
export class NonAtomicSessionStore implements AtomicSessionStoreAdapter {
  private readonly logger = new Logger('SessionStore');
  private readonly serializer: Serializer;

  constructor(private readonly adapter: SessionStoreAdapter) {
    this.serializer = serializers.get(adapter) ?? new Serializer();
    serializers.set(adapter, this.serializer);
  }

  insert(session: Session): Promise<void> {
    return this.adapter.insert(session);
  }

  async fetchById(sessionId: string): Promise<Session | null> {
    const session = await this.adapter.fetchById(sessionId);
    return session && versioned(session);
  }

  async fetchMany(query: SessionQuery): Promise<Session[]> {
    return (await this.matching(query)).slice(0, query.limit ?? DEFAULT_LIMIT);
  }

  update(sessionId: string, patch: Partial<Session>): Promise<Session> {
    return this.withSessionLock(sessionId, async () => versioned(await this.adapter.update(sessionId, patch)));
  }

  delete(sessionId: string): Promise<boolean> {
    return this.remove(sessionId);
  }

  create(draft: NewSession, rules: SurfaceRules): Promise<CreatedSession> {
    return this.withSurfaceLock(draft, () => this.createWithSurfaces(draft, rules));
  }

  createOrAdopt(draft: NewSession, rules: SurfaceRules, recentMs: number): Promise<CreatedSession> {
    return this.withSurfaceLock(draft, async () => {
      const since = new Date(Date.now() - recentMs).toISOString();
      const [surface] = draft.attachedSurfaces;
      const recent = (await this.liveSessions(draft)).find(
        ({ createdAt, attachedSurfaces }) =>
          createdAt >= since &&
          (surface === undefined ? attachedSurfaces.length === 0 : attachedSurfaces.includes(surface)),
      );
      return recent ? { session: recent, created: false, movedFrom: [] } : this.createWithSurfaces(draft, rules);
    });
  }

  touch(sessionId: string, { ttlMs, maxMs }: SessionLifetime = {}, required?: SessionIdentity): Promise<SessionChange> {
    return this.withSessionLock(sessionId, async () => {
      const before = asSwept(await this.find(sessionId, required), now(), ttlMs);
      return this.save(before, touched(before, now(), maxMs));
    });
  }

  async attachSurface(
    sessionId: string,
    surfaceId: string,
    rules: SurfaceRules,
    required?: SessionIdentity,
  ): Promise<SurfaceChange> {
    const attached = (session: Session): Session => withSurface(session, surfaceId, now(), rules);
    return this.withSurfaceLock(await this.find(sessionId, required), async () => {
      const before = await this.find(sessionId, required);
      // Check first: a session that does not get its surface must not detach it from others.
      const others = attached(before) === before ? [] : await this.surfaceHolders(before, [surfaceId], rules);
      const movedFrom = await this.takeFrom(others, [surfaceId]);
      return this.withSessionLock(sessionId, async () => {
        const held = await this.find(sessionId, required);
        const after = attached(held);
        return { ...(await this.save(held, after)), movedFrom, detached: detachedSurfaces(held, after) };
      });
    });
  }

  detachSurface(sessionId: string, surfaceId: string): Promise<SessionChange> {
    return this.change(sessionId, (session) => withoutSurface(session, surfaceId));
  }

  expire(sessionId: string): Promise<SessionChange> {
    return this.change(sessionId, (session) => expired(session, now()));
  }

  /** Expires the session. Its turns are in another store. */
  revoke(sessionId: string, required?: SessionIdentity): Promise<SessionChange> {
    return this.change(sessionId, (session) => expired(session, now()), required);
  }

  mergeMetadata(
    sessionId: string,
    patch: JsonObject,
    maxBytes: number,
    required?: SessionIdentity,
  ): Promise<SessionChange> {
    return this.change(sessionId, (session) => withMetadata(session, patch, maxBytes), required);
  }

  async suspendStale(idleMs: number, limit: number): Promise<Session[]> {
    const stale = (await this.matching({ state: 'active' })).filter((session) => isIdle(session, idleMs));
    // `find` starts with the latest activity, and a sweep with the earliest.
    const changes = await this.sweep('suspend', stale.reverse(), limit, ({ id }) =>
      this.change(id, (session) => (isIdle(session, idleMs) ? suspended(session, now()) : session)),
    );
    return changes.map(({ session }) => session);
  }

  async expireStale({ idleMs, maxMs }: SessionLifetime, limit: number): Promise<SessionChange[]> {
    const isStale = (session: Session): boolean =>
      isOverdue(session, now(), maxMs) ||
      (idleMs !== undefined && session.state !== 'active' && isIdle(session, idleMs));
    const stale = (await this.matching({ state: [...LIVE_STATES] })).filter(isStale);
    return this.sweep('expire', stale.reverse(), limit, ({ id }) =>
      this.change(id, (session) => (isStale(session) ? expired(session, now()) : session)),
    );
  }

  async purgeExpired(olderThanMs: number, limit: number): Promise<string[]> {
    const before = new Date(Math.max(0, Date.now() - olderThanMs)).toISOString();
    const over = await this.matching({ state: 'expired' });
    const old = over.filter(({ stateChangedAt }) => stateChangedAt !== undefined && stateChangedAt < before);
    // Another session may have the id by now.
    const purged = await this.sweep('delete', old, limit, async (session) => ({
      id: session.id,
      changed: await this.remove(session.id, session),
    }));
    return purged.map(({ id }) => id);
  }

  async count(query: SessionQuery): Promise<number> {
    const { cursor: _, ...conditions } = query;
    return (await this.matching(conditions)).length;
  }

  /** Deletes the session. An external store has no tombstones; the stores of its other data have. */
  erase(sessionId: string, required?: SessionIdentity): Promise<boolean> {
    return this.remove(sessionId, required);
  }

  private remove(sessionId: string, required?: SessionIdentity): Promise<boolean> {
    return this.withSessionLock(sessionId, async () => {
      const session = await this.adapter.fetchById(sessionId);
      if (session && required && !isSameSession(session, required)) return false;
      await this.adapter.delete(sessionId);
      return session !== null;
    });
  }

  private change(
    sessionId: string,
    change: (session: Session) => Session,
    required?: SessionIdentity,
  ): Promise<SessionChange> {
    return this.withSessionLock(sessionId, async () => {
      const before = await this.find(sessionId, required);
      return this.save(before, change(before));
    });
  }

  private withSessionLock<T>(sessionId: string, work: () => Promise<T>): Promise<T> {
    return this.serializer.run(JSON.stringify(['session', sessionId]), work);
  }

  /**
   * Runs the work while no session of the user and workspace attaches a surface. Always taken before the lock of a
   * session.
   */
  private withSurfaceLock<T>({ userId, workspaceId }: NewSession, work: () => Promise<T>): Promise<T> {
    return this.serializer.run(JSON.stringify(['slots', userId, workspaceId]), work);
  }

  private async createWithSurfaces(draft: NewSession, rules: SurfaceRules): Promise<CreatedSession> {
    const session = newSession(draft, now());
    const others = await this.surfaceHolders(session, draft.attachedSurfaces, rules);
    await this.withSessionLock(session.id, async () => {
      // An external store may overwrite an existing session.
      if (await this.adapter.fetchById(session.id)) throw new SessionConflictError(session.id);
      await this.adapter.insert(session);
    });
    return { session, created: true, movedFrom: await this.takeFrom(others, draft.attachedSurfaces) };
  }

  /**
   * Returns all matching sessions in the order of `find`. Fetches all and filters here, because an external store may
   * ignore conditions.
   */
  private async matching(query: SessionQuery): Promise<Session[]> {
    const { cursor: _, workspaceId, ...known } = query;
    const named = typeof workspaceId === 'string' ? { workspaceId } : {};
    const found = await this.adapter.fetchMany({ ...known, ...named, limit: ALL });
    return found.filter(matcherOf(query)).map(versioned).sort(compareSessions);
  }

  private async find(sessionId: string, required?: SessionIdentity): Promise<Session> {
    const session = await this.fetchById(sessionId);
    if (!session || (required && !isSameSession(session, required))) throw new SessionNotFoundError(sessionId);
    return session;
  }

  /** Writes only the changed fields, so that changes of other fields by another process are kept. */
  private async save(before: Session, after: Session): Promise<SessionChange> {
    const previousState = before.state;
    if (after === before) return { session: before, previousState, changed: false };
    const patch: Partial<Session> = Object.fromEntries(
      Object.entries(after).filter(([field, value]) => value !== before[field as keyof Session]),
    );
    return { session: versioned(await this.adapter.update(before.id, patch)), previousState, changed: true };
  }

  /** Processes sessions until `limit` of them changed. A session that fails is logged; the others are processed. */
  private async sweep<T extends { readonly changed: boolean }>(
    action: string,
    sessions: readonly Session[],
    limit: number,
    act: (session: Session) => Promise<T>,
  ): Promise<T[]> {
    const done: T[] = [];
    const failures: { readonly id: string; readonly error: unknown }[] = [];
    for (const session of sessions) {
      if (done.length >= limit) break;
      try {
        const outcome = await act(session);
        if (outcome.changed) done.push(outcome);
      } catch (error) {
        if (!SessionNotFoundError.isInstance(error)) failures.push({ id: session.id, error });
      }
    }
    if (failures.length > 0) {
      const [{ id, error }] = failures;
      this.logger.error(
        sessionMessages.sweepFailures(action, failures.length, sessions.length, loggedId(id)),
        traceOf(error),
      );
    }
    return done;
  }

  /** Returns other live sessions with one of the surfaces. @throws SurfaceConflictError with the policy `reject` */
  private async surfaceHolders(
    session: NewSession,
    surfaces: readonly string[],
    { policy, lifetime }: SurfaceRules,
  ): Promise<Session[]> {
    if (policy === 'share' || surfaces.length === 0) return [];
    const live = await this.liveSessions(session);
    const others = live.filter(
      ({ id, attachedSurfaces }) => id !== session.id && surfaces.some((one) => attachedSurfaces.includes(one)),
    );
    if (policy === 'reject') {
      const holders = others.filter((other) => !isAbandoned(other, now(), lifetime));
      assertSurfaceFree(session.id, surfaces, holders);
    }
    return others;
  }

  private liveSessions({ userId, workspaceId }: NewSession): Promise<Session[]> {
    return this.matching({ userId, workspaceId: workspaceId ?? null, state: [...LIVE_STATES] });
  }

  private async takeFrom(others: readonly Session[], surfaces: readonly string[]): Promise<Session[]> {
    const movedFrom: Session[] = [];
    for (const { id } of others) {
      try {
        const { session, changed } = await this.change(id, (other) => surfaces.reduce(withoutSurface, other));
        if (changed) movedFrom.push(session);
      } catch (error) {
        // Deleted concurrently.
        if (!SessionNotFoundError.isInstance(error)) throw error;
      }
    }
    return movedFrom;
  }
}

/** Sets a missing version: another program may have stored the session. */
function versioned(session: Session): Session {
  return (session as Partial<Session>).version == null ? { ...session, version: 0 } : session;
}

const now = (): string => new Date().toISOString();

function isIdle(session: Session, idleMs: number): boolean {
  return Date.now() - Date.parse(session.lastActivityAt) > idleMs;
}

/** Returns whether a session matches a validated query and comes after its cursor. The caller applies `limit`. */
export function matcherOf(query: SessionQuery): (session: Session) => boolean {
  const { userId, workspaceId, state, surfaceId, activeAfter, activeBefore, cursor } = query;
  const states = state === undefined ? undefined : [state].flat();
  const after = cursor === undefined ? undefined : decodeCursor(cursor);
  return (session) =>
    (userId === undefined || session.userId === userId) &&
    // An external store may return `null` for a session without a workspace.
    (workspaceId === undefined || (session.workspaceId ?? null) === workspaceId) &&
    (states === undefined || states.includes(session.state)) &&
    (surfaceId === undefined || session.attachedSurfaces.includes(surfaceId)) &&
    (activeAfter === undefined || session.lastActivityAt > activeAfter) &&
    (activeBefore === undefined || session.lastActivityAt < activeBefore) &&
    (after === undefined || compareSessions(after, session) < 0);
}
