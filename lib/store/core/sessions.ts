import { type JsonObject } from '../../common/json.js';
import { decodeCursor } from '../../ledger/session.cursor.js';
import { SessionConflictError, SessionNotFoundError } from '../../ledger/session.errors.js';
import {
  LIVE_STATES,
  type NewSession,
  type Session,
  type SessionChange,
  type SessionIdentity,
  type SessionLifetime,
  type SurfaceChange,
  type SurfaceRules,
} from '../../ledger/session.js';
import { type SessionQuery } from '../../ledger/session-query.js';
import {
  assertSurfaceFree,
  asSwept,
  detachedSurfaces,
  expired,
  isAbandoned,
  newSession,
  suspended,
  touched,
  withMetadata,
  withoutSurface,
  withSurface,
} from '../../ledger/session.lifecycle.js';
import { type AtomicSessionStoreAdapter, type CreatedSession } from '../../ledger/session.store.js';
import { cancelOpenTurns, isRequired } from './lane.js';
import { readableList, readableRecords, readAll } from './corrupt-records.js';
import { iso } from './iso.js';
import { toSession, toSessionRow } from './row-mapping.js';
import { type SessionRow } from './rows.js';
import { markRunningTurn } from './stop-turn.js';
import { ALL, type CoreDatabase, type SessionFilter, type Transaction } from './tables.js';

const DEFAULT_LIMIT = 50;

/** Implements sessions on the tables of a store. Each operation is one transaction. */
export class CoreSessions implements AtomicSessionStoreAdapter {
  constructor(private readonly db: CoreDatabase) {}

  async insert(session: Session): Promise<void> {
    await this.db.write((tx) => insert(tx, session));
  }

  create(draft: NewSession, rules: SurfaceRules): Promise<CreatedSession> {
    return this.db.write((tx) => create(tx, draft, rules));
  }

  createOrAdopt(draft: NewSession, rules: SurfaceRules, recentMs: number): Promise<CreatedSession> {
    return this.db.write((tx) => {
      const recent = recentSession(tx, draft, tx.now - recentMs);
      return recent ? { session: recent, created: false, movedFrom: [] } : create(tx, draft, rules);
    });
  }

  fetchById(sessionId: string): Promise<Session | null> {
    return this.db.read((tx) => {
      const row = tx.sessions.get(sessionId);
      return row ? toSession(row) : null;
    });
  }

  fetchMany(query: SessionQuery): Promise<Session[]> {
    const filter = toFilter(query);
    return readableList(query.limit ?? DEFAULT_LIMIT, (limit) =>
      this.db.read((tx) => readAll(tx.sessions.select(filter, limit), toSession)),
    );
  }

  count(query: SessionQuery): Promise<number> {
    const { cursor: _, ...filter } = query;
    return this.db.read((tx) => tx.sessions.count(toFilter(filter)));
  }

  async update(sessionId: string, patch: Partial<Session>): Promise<Session> {
    const { session } = await this.change(sessionId, (before) => ({ ...before, ...patch, id: sessionId }));
    return session;
  }

  touch(sessionId: string, { ttlMs, maxMs }: SessionLifetime = {}, required?: SessionIdentity): Promise<SessionChange> {
    return this.db.write((tx) => {
      // Reads first, because the read also returns the store's clock.
      const session = find(tx, sessionId, required);
      const now = iso(tx.now);
      const before = asSwept(session, now, ttlMs);
      return save(tx, before, touched(before, now, maxMs));
    });
  }

  attachSurface(
    sessionId: string,
    surfaceId: string,
    rules: SurfaceRules,
    required?: SessionIdentity,
  ): Promise<SurfaceChange> {
    return this.db.write((tx) => {
      const before = find(tx, sessionId, required);
      const after = withSurface(before, surfaceId, iso(tx.now), rules);
      const movedFrom = after === before ? [] : detachFromOthers(tx, before, [surfaceId], rules);
      return { ...save(tx, before, after), movedFrom, detached: detachedSurfaces(before, after) };
    });
  }

  detachSurface(sessionId: string, surfaceId: string): Promise<SessionChange> {
    return this.change(sessionId, (session) => withoutSurface(session, surfaceId));
  }

  expire(sessionId: string): Promise<SessionChange> {
    return this.db.write((tx) => expire(tx, sessionId));
  }

  revoke(sessionId: string, required?: SessionIdentity): Promise<SessionChange> {
    return this.db.write((tx) => {
      const change = expire(tx, sessionId, required);
      markRunningTurn(tx, sessionId, 'cancel');
      return change;
    });
  }

  mergeMetadata(
    sessionId: string,
    patch: JsonObject,
    maxBytes: number,
    required?: SessionIdentity,
  ): Promise<SessionChange> {
    return this.change(sessionId, (session) => withMetadata(session, patch, maxBytes), required);
  }

  suspendStale(idleMs: number, limit: number): Promise<Session[]> {
    return this.db.write((tx) =>
      readableSessions(limit, (most) => tx.sessions.stale(tx.now - idleMs, most)).map(
        (session) => save(tx, session, suspended(session, iso(tx.now))).session,
      ),
    );
  }

  expireStale({ idleMs, maxMs }: SessionLifetime, limit: number): Promise<SessionChange[]> {
    const before = (tx: Transaction, ms: number | undefined): number | null => (ms === undefined ? null : tx.now - ms);
    return this.db.write((tx) =>
      readableSessions(limit, (most) => tx.sessions.ended(before(tx, idleMs), before(tx, maxMs), most)).map((session) =>
        save(tx, session, expired(session, iso(tx.now))),
      ),
    );
  }

  purgeExpired(olderThanMs: number, limit: number): Promise<string[]> {
    return this.db.write((tx) => {
      const ids = tx.sessions.expiredBefore(tx.now - olderThanMs, limit);
      for (const id of ids) remove(tx, id);
      return ids;
    });
  }

  delete(sessionId: string): Promise<boolean> {
    return this.db.write((tx) => removeFound(tx, sessionId));
  }

  erase(sessionId: string, required?: SessionIdentity): Promise<boolean> {
    return this.db.write((tx) => {
      const row = tx.sessions.get(sessionId);
      if (row && !isRequired(row, required ?? true)) return false;
      if (!tx.tombstones.get(sessionId)) tx.tombstones.insert({ sessionId, erasedAt: tx.now });
      return removeFound(tx, sessionId);
    });
  }

  private change(
    sessionId: string,
    change: (session: Session, now: string) => Session,
    required?: SessionIdentity,
  ): Promise<SessionChange> {
    return this.db.write((tx) => {
      const before = find(tx, sessionId, required);
      return save(tx, before, change(before, iso(tx.now)));
    });
  }
}

function create(tx: Transaction, draft: NewSession, rules: SurfaceRules): CreatedSession {
  const session = insert(tx, newSession(draft, iso(tx.now)));
  return { session, created: true, movedFrom: detachFromOthers(tx, session, session.attachedSurfaces, rules) };
}

function insert(tx: Transaction, session: Session): Session {
  if (tx.sessions.get(session.id) ?? tx.tombstones.get(session.id)) throw new SessionConflictError(session.id);
  tx.sessions.insert(toSessionRow(session));
  return session;
}

/** @returns whether the session existed */
function removeFound(tx: Transaction, sessionId: string): boolean {
  const found = tx.sessions.get(sessionId) !== undefined;
  remove(tx, sessionId);
  return found;
}

/** Removes a session, and notifies callers that wait for its turns. */
function remove(tx: Transaction, sessionId: string): void {
  for (const turn of tx.turns.open(sessionId)) tx.changed(turn.id);
  tx.deleteSession(sessionId);
}

function expire(tx: Transaction, sessionId: string, required?: SessionIdentity): SessionChange {
  const before = find(tx, sessionId, required);
  // Also on a repeat, because a running turn may have returned to the queue.
  cancelOpenTurns(tx, sessionId);
  return save(tx, before, expired(before, iso(tx.now)));
}

/** @throws SessionNotFoundError also if another session than the required one has the id */
function find(tx: Transaction, sessionId: string, required?: SessionIdentity): Session {
  const row = tx.sessions.get(sessionId);
  if (!row || !isRequired(row, required ?? true)) throw new SessionNotFoundError(sessionId);
  return toSession(row);
}

/**
 * Detaches the surfaces from the other live sessions of the same user and workspace (SES-07).
 * @returns the sessions that lost a surface
 */
function detachFromOthers(
  tx: Transaction,
  session: NewSession,
  surfaces: readonly string[],
  { policy, lifetime }: SurfaceRules,
): Session[] {
  // Keyed by id, because one session may lose several surfaces.
  const movedFrom = new Map<string, Session>();
  for (const surfaceId of surfaces) {
    // Reads them even with `share`: where reads take locks, no concurrent transaction can then find the surface free.
    const others = liveSessions(tx, session, { surfaceId }).filter(({ id }) => id !== session.id);
    if (policy === 'share') continue;
    if (policy === 'reject') {
      const holders = others.filter((other) => !isAbandoned(other, iso(tx.now), lifetime));
      assertSurfaceFree(session.id, [surfaceId], holders);
    }
    for (const other of others) movedFrom.set(other.id, save(tx, other, withoutSurface(other, surfaceId)).session);
  }
  return [...movedFrom.values()];
}

/** Returns a session that was just created for the same user, workspace and surface. */
function recentSession(tx: Transaction, draft: NewSession, since: number): Session | undefined {
  const [surfaceId] = draft.attachedSurfaces;
  // Its last activity is not older than its creation, which excludes the user's older sessions. Those with a surface are few, and
  // read by the next step anyway.
  const filter = surfaceId === undefined ? { activeAfter: since - 1 } : { surfaceId };
  return liveSessions(tx, draft, filter).find(
    ({ createdAt, attachedSurfaces }) =>
      Date.parse(createdAt) >= since && (surfaceId !== undefined || attachedSurfaces.length === 0),
  );
}

function liveSessions(
  tx: Transaction,
  { userId, workspaceId }: NewSession,
  which: Pick<SessionFilter, 'surfaceId' | 'activeAfter'>,
): Session[] {
  const filter = { userId, workspaceId: workspaceId ?? null, states: LIVE_STATES, ...which };
  return readableRecords(tx.sessions.select(filter, ALL), toSession);
}

/** Returns up to `limit` readable sessions. */
function readableSessions(limit: number, select: (limit: number) => readonly SessionRow[]): Session[] {
  for (let asked = limit; ;) {
    const rows = select(asked);
    const sessions = readableRecords(rows, toSession);
    if (sessions.length >= limit || rows.length < asked) return sessions.slice(0, limit);
    asked = limit + rows.length - sessions.length;
  }
}

function save(tx: Transaction, before: Session, after: Session): SessionChange {
  const previousState = before.state;
  if (after === before) return { session: before, previousState, changed: false };
  const { id, ...row } = toSessionRow(after);
  const { userId, surfaces, metadata, ...rest } = row;
  const keepsSurfaces = after.attachedSurfaces === before.attachedSurfaces && after.userId === before.userId;
  // Omits the two large JSON columns, which most changes do not affect. A store finds a session by its surfaces and user.
  tx.sessions.update(id, {
    ...rest,
    ...(keepsSurfaces ? {} : { userId, surfaces }),
    ...(after.metadata === before.metadata ? {} : { metadata }),
  });
  return { session: after, previousState, changed: true };
}

function toFilter({ state, activeAfter, activeBefore, cursor, limit: _, ...rest }: SessionQuery): SessionFilter {
  return {
    ...rest,
    ...(state === undefined ? {} : { states: Array.isArray(state) ? state : [state] }),
    ...(activeAfter === undefined ? {} : { activeAfter: Date.parse(activeAfter) }),
    ...(activeBefore === undefined ? {} : { activeBefore: Date.parse(activeBefore) }),
    ...(cursor === undefined ? {} : { after: decodeCursor(cursor) }),
  };
}
