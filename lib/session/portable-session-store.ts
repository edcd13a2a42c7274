import { type JsonObject } from '../common/json.js';
import { SessionNotFoundError } from './session.errors.js';
import { compareSessions, decodeCursor } from './session.cursor.js';
import {
  LIVE_STATES,
  type NewSession,
  type Session,
  type SessionChange,
  type SessionLifetime,
  type SurfaceChange,
  type SurfaceRules,
} from './session.js';
import { type SessionQuery } from './session.inputs.js';
import {
  assertSurfaceFree,
  expired,
  isOverdue,
  newSession,
  suspended,
  touched,
  withMetadata,
  withoutSurface,
  withSurface,
} from './session.lifecycle.js';
import { type AtomicSessionStoreAdapter, type CreatedSession, type SessionStoreAdapter } from './session.store.js';

const ALL = Number.MAX_SAFE_INTEGER;
const DEFAULT_LIMIT = 50;

/**
 * The atomic interface over a foreign store that has only the five basic methods (SES-15): it reads, changes and
 * writes, by this process's clock. What another process changes in between can be lost.
 */
export class PortableSessionStore implements AtomicSessionStoreAdapter {
  constructor(private readonly adapter: SessionStoreAdapter) {}

  insert(session: Session): Promise<void> {
    return this.adapter.insert(session);
  }

  fetchById(sessionId: string): Promise<Session | null> {
    return this.adapter.fetchById(sessionId);
  }

  async fetchMany(query: SessionQuery): Promise<Session[]> {
    const { workspaceId, ...plain } = query;
    // What the source's interface does not have is done here: no workspace, an upper bound of activity, pages.
    const foreign = workspaceId === null || query.activeBefore !== undefined || query.cursor !== undefined;
    if (foreign) return (await this.matching(query)).slice(0, query.limit ?? DEFAULT_LIMIT);
    return this.adapter.fetchMany(workspaceId === undefined ? plain : { ...plain, workspaceId });
  }

  update(sessionId: string, patch: Partial<Session>): Promise<Session> {
    return this.adapter.update(sessionId, patch);
  }

  async delete(sessionId: string): Promise<boolean> {
    const session = await this.adapter.fetchById(sessionId);
    await this.adapter.delete(sessionId);
    return session !== null;
  }

  async create(draft: NewSession, rules: SurfaceRules): Promise<CreatedSession> {
    const session = newSession(draft, now());
    const others = await this.slotHolders(session, draft.attachedSurfaces, rules);
    await this.adapter.insert(session);
    return { session, created: true, movedFrom: await this.takeFrom(others, draft.attachedSurfaces) };
  }

  async createOrAdopt(draft: NewSession, rules: SurfaceRules, recentMs: number): Promise<CreatedSession> {
    const since = new Date(Date.now() - recentMs).toISOString();
    const live = await this.liveSessions(draft);
    const [surface] = draft.attachedSurfaces;
    const recent = live.find(
      ({ createdAt, attachedSurfaces }) =>
        createdAt >= since &&
        (surface === undefined ? attachedSurfaces.length === 0 : attachedSurfaces.includes(surface)),
    );
    return recent ? { session: recent, created: false, movedFrom: [] } : this.create(draft, rules);
  }

  touch(sessionId: string, maxLifetimeMs?: number): Promise<SessionChange> {
    return this.change(sessionId, (session) => touched(session, now(), maxLifetimeMs));
  }

  async attachSurface(sessionId: string, surfaceId: string, rules: SurfaceRules): Promise<SurfaceChange> {
    const before = await this.find(sessionId);
    const after = withSurface(before, surfaceId, rules.maxSurfaces);
    const others = after === before ? [] : await this.slotHolders(before, [surfaceId], rules);
    const movedFrom = await this.takeFrom(others, [surfaceId]);
    return { ...(await this.save(before, after)), movedFrom };
  }

  detachSurface(sessionId: string, surfaceId: string): Promise<SessionChange> {
    return this.change(sessionId, (session) => withoutSurface(session, surfaceId));
  }

  expire(sessionId: string): Promise<SessionChange> {
    return this.change(sessionId, (session) => expired(session, now()));
  }

  /** The turns are in another store. */
  revoke(sessionId: string): Promise<SessionChange> {
    return this.expire(sessionId);
  }

  mergeMetadata(sessionId: string, patch: JsonObject, maxBytes: number): Promise<SessionChange> {
    return this.change(sessionId, (session) => withMetadata(session, patch, maxBytes));
  }

  async suspendStale(idleMs: number, limit: number): Promise<Session[]> {
    const activeBefore = new Date(Math.max(0, Date.now() - idleMs)).toISOString();
    const stale = (await this.matching({ state: 'active', activeBefore })).reverse().slice(0, limit);
    const changes = await this.saveEach(stale, (session) => suspended(session, now()));
    return changes.map(({ session }) => session);
  }

  async expireStale({ idleMs, maxMs }: SessionLifetime, limit: number): Promise<SessionChange[]> {
    const live = await this.matching({ state: [...LIVE_STATES] });
    const stale = live.filter(
      (session) =>
        isOverdue(session, now(), maxMs) ||
        (idleMs !== undefined && session.state !== 'active' && isIdle(session, idleMs)),
    );
    return this.saveEach(stale.reverse().slice(0, limit), (session) => expired(session, now()));
  }

  async purgeExpired(olderThanMs: number, limit: number): Promise<string[]> {
    const before = new Date(Math.max(0, Date.now() - olderThanMs)).toISOString();
    const over = await this.matching({ state: 'expired' });
    const old = over.filter(({ stateChangedAt }) => stateChangedAt !== undefined && stateChangedAt < before);
    return eachOf(old.slice(0, limit), async ({ id }) => {
      await this.adapter.delete(id);
      return id;
    });
  }

  async count(query: SessionQuery): Promise<number> {
    const { cursor: _, ...conditions } = query;
    return (await this.matching(conditions)).length;
  }

  /** A foreign store has no tombstones; the rest of the data has. */
  erase(sessionId: string): Promise<boolean> {
    return this.delete(sessionId);
  }

  private async change(sessionId: string, change: (session: Session) => Session): Promise<SessionChange> {
    const before = await this.find(sessionId);
    return this.save(before, change(before));
  }

  /** Every match in order. A foreign store may know no cursor, and ignore what the source's interface does not have. */
  private async matching({ cursor, limit: _, workspaceId, ...query }: SessionQuery): Promise<Session[]> {
    const { activeBefore } = query;
    const after = cursor === undefined ? undefined : decodeCursor(cursor);
    const named = typeof workspaceId === 'string' ? { workspaceId } : {};
    const found = await this.adapter.fetchMany({ ...query, ...named, limit: ALL });
    return found
      .filter(
        (session) =>
          (workspaceId !== null || session.workspaceId === undefined) &&
          (activeBefore === undefined || session.lastActivityAt < activeBefore) &&
          (after === undefined || compareSessions(after, session) < 0),
      )
      .sort(compareSessions);
  }

  private async find(sessionId: string): Promise<Session> {
    const session = await this.adapter.fetchById(sessionId);
    if (!session) throw new SessionNotFoundError(sessionId);
    // The source's sessions have no version.
    return { ...session, version: (session as Partial<Session>).version ?? 0 };
  }

  private async save(before: Session, after: Session): Promise<SessionChange> {
    const previousState = before.state;
    if (after === before) return { session: before, previousState, changed: false };
    const { id, ...patch } = after;
    return { session: await this.adapter.update(id, patch), previousState, changed: true };
  }

  private saveEach(sessions: readonly Session[], change: (session: Session) => Session): Promise<SessionChange[]> {
    return eachOf(sessions, (session) => this.save(session, change(session)));
  }

  /** Other live sessions that hold one of the surfaces. @throws SurfaceConflictError when the policy is to refuse */
  private async slotHolders(
    session: NewSession,
    surfaces: readonly string[],
    { policy }: SurfaceRules,
  ): Promise<Session[]> {
    if (policy === 'share' || surfaces.length === 0) return [];
    const live = await this.liveSessions(session);
    const others = live.filter(
      ({ id, attachedSurfaces }) => id !== session.id && surfaces.some((one) => attachedSurfaces.includes(one)),
    );
    if (policy === 'reject') assertSurfaceFree(session.id, surfaces, others);
    return others;
  }

  private liveSessions({ userId, workspaceId }: NewSession): Promise<Session[]> {
    return this.matching({ userId, workspaceId: workspaceId ?? null, state: [...LIVE_STATES] });
  }

  private async takeFrom(others: readonly Session[], surfaces: readonly string[]): Promise<Session[]> {
    const changes = await this.saveEach(others, (session) => surfaces.reduce(withoutSurface, session));
    return changes.map(({ session }) => session);
  }
}

/** One bad row does not lose the rest; when nothing went well the caller must know why. */
async function eachOf<T>(sessions: readonly Session[], act: (session: Session) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let failure: Error | undefined;
  for (const session of sessions) {
    try {
      results.push(await act(session));
    } catch (error) {
      if (!(error instanceof SessionNotFoundError)) failure = error as Error;
    }
  }
  if (failure && results.length === 0) throw failure;
  return results;
}

const now = (): string => new Date().toISOString();

function isIdle(session: Session, idleMs: number): boolean {
  return Date.now() - Date.parse(session.lastActivityAt) > idleMs;
}
