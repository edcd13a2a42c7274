import { type JsonObject } from '../../common/json.js';
import { decodeCursor } from '../../ledger/session.cursor.js';
import {
  type NewSession,
  type Session,
  type SessionChange,
  type SessionIdentity,
  type SessionLifetime,
  type SurfaceChange,
  type SurfaceRules,
} from '../../ledger/session.js';
import { type SessionQuery } from '../../ledger/session-query.js';
import { type AtomicSessionStoreAdapter, type CreatedSession } from '../../ledger/session.store.js';
import { readableList, readableRecords, readAll } from '../core/corrupt-records.js';
import { type RedisDatabase } from './redis-database.js';
import { requiredSession } from './redis-documents.js';
import { changeOf, type Fields, metadataFields, sessionFields, sessionOf, type StoredChange } from './redis-rows.js';
import { type Script, SCRIPTS } from './redis-scripts.js';

const DEFAULT_LIMIT = 50;

/** Stores sessions in Redis. Each operation is one script. */
export class RedisSessions implements AtomicSessionStoreAdapter {
  constructor(private readonly db: RedisDatabase) {}

  async insert(session: Session): Promise<void> {
    const fields = sessionFields(session).filter(([, value]) => value !== '');
    await this.db.run(SCRIPTS.insertSession, session.id, 'id', session.id, ...fields.flat());
  }

  create(draft: NewSession, rules: SurfaceRules): Promise<CreatedSession> {
    return this.createUnless(draft, rules, '');
  }

  createOrAdopt(draft: NewSession, rules: SurfaceRules, recentMs: number): Promise<CreatedSession> {
    return this.createUnless(draft, rules, recentMs);
  }

  async fetchById(sessionId: string): Promise<Session | null> {
    const [fields] = await this.db.run<[Fields]>(SCRIPTS.getSession, sessionId);
    return fields.length > 0 ? sessionOf(fields) : null;
  }

  async fetchMany(query: SessionQuery): Promise<Session[]> {
    const limit = query.limit ?? DEFAULT_LIMIT;
    const filter = toFilter(query);
    return readableList(limit, async (most) => {
      const [sessions] = await this.db.run<[Fields[]]>(
        SCRIPTS.findSessions,
        JSON.stringify({ ...filter, limit: most }),
      );
      return readAll(sessions, sessionOf);
    });
  }

  async count({ cursor: _, ...query }: SessionQuery): Promise<number> {
    const [total] = await this.db.run<[number]>(SCRIPTS.countSessions, JSON.stringify(toFilter(query)));
    return total;
  }

  async update(sessionId: string, patch: Partial<Session>): Promise<Session> {
    const { metadata, ...columns } = patch;
    const named = new Set(Object.keys(columns).map((field) => (field === 'attachedSurfaces' ? 'surfaces' : field)));
    const fields = sessionFields({ ...ANY_SESSION, ...columns }).filter(([field]) => named.has(field));
    const replaced = metadata === undefined ? [] : metadataFields(metadata);
    const args = [...fields, ...replaced].flat();
    const [session] = await this.db.run<[Fields]>(
      SCRIPTS.updateSession,
      sessionId,
      metadata === undefined ? '' : '1',
      ...args,
    );
    return sessionOf(session);
  }

  touch(sessionId: string, { ttlMs, maxMs }: SessionLifetime = {}, required?: SessionIdentity): Promise<SessionChange> {
    return this.change(SCRIPTS.touchSession, sessionId, ttlMs ?? '', maxMs ?? '', requiredText(required));
  }

  async attachSurface(
    sessionId: string,
    surfaceId: string,
    rules: SurfaceRules,
    required?: SessionIdentity,
  ): Promise<SurfaceChange> {
    const { policy, maxSurfaces, onLimit, lifetime } = rules;
    const [change, movedFrom, detached] = await this.db.run<[StoredChange, Fields[], string[]]>(
      SCRIPTS.attachSurface,
      sessionId,
      surfaceId,
      policy,
      maxSurfaces,
      onLimit ?? '',
      lifetimeText(lifetime),
      requiredText(required),
    );
    return { ...changeOf(change), movedFrom: readableRecords(movedFrom, sessionOf), detached };
  }

  detachSurface(sessionId: string, surfaceId: string): Promise<SessionChange> {
    return this.change(SCRIPTS.detachSurface, sessionId, surfaceId);
  }

  expire(sessionId: string): Promise<SessionChange> {
    return this.change(SCRIPTS.expireSession, sessionId);
  }

  revoke(sessionId: string, required?: SessionIdentity): Promise<SessionChange> {
    return this.change(SCRIPTS.revokeSession, sessionId, requiredText(required));
  }

  mergeMetadata(
    sessionId: string,
    patch: JsonObject,
    maxBytes: number,
    required?: SessionIdentity,
  ): Promise<SessionChange> {
    const fields = metadataFields(patch).map(([field, value]) => [field, value === 'null' ? '' : value]);
    return this.change(SCRIPTS.mergeMetadata, sessionId, maxBytes, requiredText(required), ...fields.flat());
  }

  async suspendStale(idleMs: number, limit: number): Promise<Session[]> {
    const [sessions] = await this.db.run<[Fields[]]>(SCRIPTS.suspendStale, idleMs, limit);
    return readableRecords(sessions, sessionOf);
  }

  async expireStale({ idleMs, maxMs }: SessionLifetime, limit: number): Promise<SessionChange[]> {
    const [changes] = await this.db.run<[StoredChange[]]>(SCRIPTS.expireStale, idleMs ?? '', maxMs ?? '', limit);
    return readableRecords(changes, changeOf);
  }

  async purgeExpired(olderThanMs: number, limit: number): Promise<string[]> {
    const [ids] = await this.db.run<[string[]]>(SCRIPTS.purgeExpired, olderThanMs, limit);
    return ids;
  }

  delete(sessionId: string): Promise<boolean> {
    return this.remove(SCRIPTS.deleteSession, sessionId);
  }

  erase(sessionId: string, required?: SessionIdentity): Promise<boolean> {
    return this.remove(SCRIPTS.eraseSession, sessionId, requiredText(required));
  }

  private async remove(script: Script, ...args: readonly (string | number)[]): Promise<boolean> {
    const [found] = await this.db.run<[number]>(script, ...args);
    return found === 1;
  }

  private async createUnless(
    { id, userId, workspaceId, attachedSurfaces, metadata }: NewSession,
    { policy, lifetime }: SurfaceRules,
    recentMs: number | '',
  ): Promise<CreatedSession> {
    const surfaces = JSON.stringify(attachedSurfaces);
    const [session, created, movedFrom] = await this.db.run<[Fields, number, Fields[]]>(
      SCRIPTS.createSession,
      id,
      userId,
      workspaceId ?? '',
      surfaces,
      policy,
      recentMs,
      lifetimeText(lifetime),
      ...metadataFields(metadata).flat(),
    );
    return { session: sessionOf(session), created: created === 1, movedFrom: readableRecords(movedFrom, sessionOf) };
  }

  private async change(script: Script, ...args: readonly (string | number)[]): Promise<SessionChange> {
    const [change] = await this.db.run<[StoredChange]>(script, ...args);
    return changeOf(change);
  }
}

/** Returns the session in the format of is_other_session in scripts/include/common.lua, or '' for any session. */
function requiredText(required?: SessionIdentity): string | number {
  return requiredSession({ requireSession: required ?? false });
}

/** Returns the lifetime in the format of is_abandoned in scripts/include/sessions.lua. */
function lifetimeText({ ttlMs, idleMs, maxMs }: SessionLifetime = {}): string {
  const active = idleMs === undefined || ttlMs === undefined ? {} : { active_idle_ms: Math.max(idleMs, ttlMs) };
  return JSON.stringify({ max_ms: maxMs, idle_ms: idleMs, ...active });
}

/** Returns the filter in the format of scripts/include/session-filter.lua, with times in milliseconds. */
function toFilter({ userId, workspaceId, state, surfaceId, activeAfter, activeBefore, cursor }: SessionQuery): object {
  return {
    userId,
    surfaceId,
    ...(workspaceId === null ? { noWorkspace: true } : { workspaceId }),
    states: state === undefined ? undefined : [...new Set([state].flat())],
    activeAfter: activeAfter === undefined ? undefined : Date.parse(activeAfter),
    activeBefore: activeBefore === undefined ? undefined : Date.parse(activeBefore),
    after: cursor === undefined ? undefined : toPlace(decodeCursor(cursor)),
  };
}

/** The latest time that a Date can represent; see scripts/include/sessions.lua. */
const LAST_TIME = 8.64e15;

function toPlace({ lastActivityAt, createdAt, id }: ReturnType<typeof decodeCursor>): object {
  const rank = String(LAST_TIME - Date.parse(createdAt)).padStart(17, '0');
  return { active: Date.parse(lastActivityAt), member: `${rank}:${id}` };
}

/** Default values for the fields that a patch omits. */
const ANY_SESSION: Session = {
  id: '',
  userId: '',
  state: 'created',
  createdAt: new Date(0).toISOString(),
  lastActivityAt: new Date(0).toISOString(),
  attachedSurfaces: [],
  metadata: {},
  version: 1,
};
