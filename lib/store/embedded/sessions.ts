import { type JsonObject } from '../../common/json.js';
import { decodeCursor } from '../../session/session.cursor.js';
import { SessionConflictError, SessionNotFoundError } from '../../session/session.errors.js';
import { type NewSession, type Session, type SessionTouch } from '../../session/session.js';
import { type SessionQuery } from '../../session/session.inputs.js';
import {
  expired,
  newSession,
  suspended,
  touched,
  withMetadata,
  withoutSurface,
  withSurface,
} from '../../session/session.lifecycle.js';
import { type AtomicSessionStoreAdapter } from '../../session/session.store.js';
import { cancelOpenTurns } from './lane.js';
import { iso, toSession, toSessionRow } from './row-mapping.js';
import { type EmbeddedDatabase, type SessionFilter, type Transaction } from './tables.js';

const DEFAULT_LIMIT = 50;

/** Sessions of an embedded store: the pure lifecycle, applied inside one transaction each. */
export class EmbeddedSessions implements AtomicSessionStoreAdapter {
  constructor(private readonly db: EmbeddedDatabase) {}

  async insert(session: Session): Promise<void> {
    await this.db.write((tx) => insert(tx, session));
  }

  create(draft: NewSession): Promise<Session> {
    return this.db.write((tx) => insert(tx, newSession(draft, iso(tx.now))));
  }

  fetchById(sessionId: string): Promise<Session | null> {
    return this.db.read((tx) => {
      const row = tx.sessions.get(sessionId);
      return row ? toSession(row) : null;
    });
  }

  fetchMany(query: SessionQuery): Promise<Session[]> {
    return this.db.read((tx) => tx.sessions.select(toFilter(query), query.limit ?? DEFAULT_LIMIT).map(toSession));
  }

  count(query: SessionQuery): Promise<number> {
    const { cursor: _, ...filter } = query;
    return this.db.read((tx) => tx.sessions.count(toFilter(filter)));
  }

  update(sessionId: string, patch: Partial<Session>): Promise<Session> {
    return this.change(sessionId, (session) => ({ ...session, ...patch, id: sessionId }));
  }

  async touch(sessionId: string): Promise<SessionTouch> {
    return this.db.write((tx) => {
      const before = find(tx, sessionId);
      return { session: save(tx, before, touched(before, iso(tx.now))), previousState: before.state };
    });
  }

  attachSurface(sessionId: string, surfaceId: string, maxSurfaces: number): Promise<Session> {
    return this.change(sessionId, (session) => withSurface(session, surfaceId, maxSurfaces));
  }

  detachSurface(sessionId: string, surfaceId: string): Promise<Session> {
    return this.change(sessionId, (session) => withoutSurface(session, surfaceId));
  }

  expire(sessionId: string): Promise<Session> {
    return this.db.write((tx) => {
      const before = find(tx, sessionId);
      const after = save(tx, before, expired(before, iso(tx.now)));
      if (after !== before) cancelOpenTurns(tx, sessionId);
      return after;
    });
  }

  mergeMetadata(sessionId: string, patch: JsonObject, maxBytes: number): Promise<Session> {
    return this.change(sessionId, (session) => withMetadata(session, patch, maxBytes));
  }

  suspendStale(idleMs: number, limit: number): Promise<Session[]> {
    return this.db.write((tx) =>
      tx.sessions.stale(tx.now - idleMs, limit).map((row) => {
        const session = toSession(row);
        return save(tx, session, suspended(session, iso(tx.now)));
      }),
    );
  }

  delete(sessionId: string): Promise<void> {
    return this.db.write((tx) => remove(tx, sessionId));
  }

  erase(sessionId: string): Promise<void> {
    return this.db.write((tx) => {
      if (!tx.tombstones.get(sessionId)) tx.tombstones.insert({ sessionId, erasedAt: tx.now });
      remove(tx, sessionId);
    });
  }

  private change(sessionId: string, change: (session: Session, now: string) => Session): Promise<Session> {
    return this.db.write((tx) => {
      const before = find(tx, sessionId);
      return save(tx, before, change(before, iso(tx.now)));
    });
  }
}

function insert(tx: Transaction, session: Session): Session {
  if (tx.sessions.get(session.id) ?? tx.tombstones.get(session.id)) throw new SessionConflictError(session.id);
  tx.sessions.insert(toSessionRow(session));
  return session;
}

/** Whoever waits for a turn of the session is told. */
function remove(tx: Transaction, sessionId: string): void {
  for (const turn of tx.turns.open(sessionId)) tx.changed(turn.id);
  tx.deleteSession(sessionId);
}

function find(tx: Transaction, sessionId: string): Session {
  const row = tx.sessions.get(sessionId);
  if (!row) throw new SessionNotFoundError(sessionId);
  return toSession(row);
}

function save(tx: Transaction, before: Session, after: Session): Session {
  if (after === before) return before;
  const { id, ...row } = toSessionRow(after);
  const { surfaces, metadata, ...rest } = row;
  // The two JSON columns are the large ones, and most changes leave them alone.
  tx.sessions.update(id, {
    ...rest,
    ...(after.attachedSurfaces === before.attachedSurfaces ? {} : { surfaces }),
    ...(after.metadata === before.metadata ? {} : { metadata }),
  });
  return after;
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
