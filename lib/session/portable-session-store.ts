import { type JsonObject } from '../common/json.js';
import { SessionNotFoundError } from './session.errors.js';
import { type NewSession, type Session, type SessionTouch } from './session.js';
import { compareSessions, decodeCursor } from './session.cursor.js';
import { type SessionQuery } from './session.inputs.js';
import {
  expired,
  newSession,
  suspended,
  touched,
  withMetadata,
  withoutSurface,
  withSurface,
} from './session.lifecycle.js';
import { type AtomicSessionStoreAdapter, type SessionStoreAdapter } from './session.store.js';

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
    if (query.cursor === undefined && query.activeBefore === undefined) return this.adapter.fetchMany(query);
    return (await this.matching(query)).slice(0, query.limit ?? DEFAULT_LIMIT);
  }

  update(sessionId: string, patch: Partial<Session>): Promise<Session> {
    return this.adapter.update(sessionId, patch);
  }

  delete(sessionId: string): Promise<void> {
    return this.adapter.delete(sessionId);
  }

  async create(draft: NewSession): Promise<Session> {
    const session = newSession(draft, now());
    await this.adapter.insert(session);
    return session;
  }

  async touch(sessionId: string): Promise<SessionTouch> {
    const before = await this.find(sessionId);
    return { session: await this.save(before, touched(before, now())), previousState: before.state };
  }

  async attachSurface(sessionId: string, surfaceId: string, maxSurfaces: number): Promise<Session> {
    const before = await this.find(sessionId);
    return this.save(before, withSurface(before, surfaceId, maxSurfaces));
  }

  async detachSurface(sessionId: string, surfaceId: string): Promise<Session> {
    const before = await this.find(sessionId);
    return this.save(before, withoutSurface(before, surfaceId));
  }

  async expire(sessionId: string): Promise<Session> {
    const before = await this.find(sessionId);
    return this.save(before, expired(before, now()));
  }

  async mergeMetadata(sessionId: string, patch: JsonObject, maxBytes: number): Promise<Session> {
    const before = await this.find(sessionId);
    return this.save(before, withMetadata(before, patch, maxBytes));
  }

  async suspendStale(idleMs: number, limit: number): Promise<Session[]> {
    const activeBefore = new Date(Math.max(0, Date.now() - idleMs)).toISOString();
    const stale = (await this.matching({ state: 'active', activeBefore })).reverse().slice(0, limit);
    const changed: Session[] = [];
    let failure: Error | undefined;
    for (const session of stale) {
      try {
        changed.push(await this.save(session, suspended(session, now())));
      } catch (error) {
        if (!(error instanceof SessionNotFoundError)) failure = error as Error;
      }
    }
    // One bad row does not lose the rest; when nothing went well the caller must know why.
    if (failure && changed.length === 0) throw failure;
    return changed;
  }

  async count(query: SessionQuery): Promise<number> {
    const { cursor: _, ...conditions } = query;
    return (await this.matching(conditions)).length;
  }

  /** A foreign store has no tombstones; the rest of the data has. */
  erase(sessionId: string): Promise<void> {
    return this.adapter.delete(sessionId);
  }

  /** Every match in order. A foreign store may know no cursor and ignore `activeBefore`. */
  private async matching({ cursor, limit: _, ...query }: SessionQuery): Promise<Session[]> {
    const { activeBefore } = query;
    const after = cursor === undefined ? undefined : decodeCursor(cursor);
    const found = await this.adapter.fetchMany({ ...query, limit: ALL });
    return found
      .filter(
        (session) =>
          (activeBefore === undefined || session.lastActivityAt < activeBefore) &&
          (after === undefined || compareSessions(after, session) < 0),
      )
      .sort(compareSessions);
  }

  private async find(sessionId: string): Promise<Session> {
    const session = await this.adapter.fetchById(sessionId);
    if (!session) throw new SessionNotFoundError(sessionId);
    return session;
  }

  private async save(before: Session, after: Session): Promise<Session> {
    if (after === before) return before;
    const { id, ...patch } = after;
    return this.adapter.update(id, patch);
  }
}

const now = (): string => new Date().toISOString();
