import { type JsonObject } from '../../common/json.js';
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
import { toSessionRow } from '../core/row-mapping.js';
import { readableRecords } from '../core/corrupt-records.js';
import { columnName } from '../sql/columns.js';
import { type PostgresDatabase } from './postgres-database.js';
import { requiredSession } from './postgres-documents.js';
import { encodeMetadata, encodePatch, toSessionFromSql } from './postgres-metadata.js';
import { granted } from './postgres-refusals.js';
import { type SqlRow, toColumns } from './postgres-rows.js';
import { countSessions, findSession, findSessions } from './postgres-session-queries.js';

type SqlChange = Omit<SessionChange, 'session'> & { readonly session: SqlRow };

/** Stores sessions in PostgreSQL. Each operation is one call. */
export class PostgresSessions implements AtomicSessionStoreAdapter {
  constructor(private readonly db: PostgresDatabase) {}

  async insert(session: Session): Promise<void> {
    granted(await this.db.call('insert_session_v1', toSessionArgs(session)));
  }

  create(draft: NewSession, rules: SurfaceRules): Promise<CreatedSession> {
    return this.createUnless(draft, rules, null);
  }

  createOrAdopt(draft: NewSession, rules: SurfaceRules, recentMs: number): Promise<CreatedSession> {
    return this.createUnless(draft, rules, recentMs);
  }

  fetchById(sessionId: string): Promise<Session | null> {
    return findSession(this.db, sessionId);
  }

  fetchMany(query: SessionQuery): Promise<Session[]> {
    return findSessions(this.db, query);
  }

  count(query: SessionQuery): Promise<number> {
    return countSessions(this.db, query);
  }

  async update(sessionId: string, patch: Partial<Session>): Promise<Session> {
    const given = toPatch(patch);
    return toSessionFromSql(granted(await this.db.call<SqlRow>('update_session_v1', { id: sessionId, patch: given })));
  }

  touch(sessionId: string, { ttlMs, maxMs }: SessionLifetime = {}, required?: SessionIdentity): Promise<SessionChange> {
    return this.change('touch_session_v1', { ...argsOf(sessionId, required), ttl_ms: ttlMs, max_lifetime_ms: maxMs });
  }

  async attachSurface(
    sessionId: string,
    surfaceId: string,
    rules: SurfaceRules,
    required?: SessionIdentity,
  ): Promise<SurfaceChange> {
    const { policy, maxSurfaces, onLimit, lifetime } = rules;
    const args = {
      ...argsOf(sessionId, required),
      surface_id: surfaceId,
      policy,
      max_surfaces: maxSurfaces,
      on_limit: onLimit,
      lifetime: lifetimeArgs(lifetime),
    };
    const { change, movedFrom, detached } = granted(
      await this.db.call<{ change: SqlChange; movedFrom: SqlRow[]; detached: string[] }>('attach_surface_v1', args),
    );
    return { ...toChange(change), movedFrom: readableRecords(movedFrom, toSessionFromSql), detached };
  }

  detachSurface(sessionId: string, surfaceId: string): Promise<SessionChange> {
    return this.change('detach_surface_v1', { id: sessionId, surface_id: surfaceId });
  }

  expire(sessionId: string): Promise<SessionChange> {
    return this.change('expire_session_v1', { id: sessionId });
  }

  revoke(sessionId: string, required?: SessionIdentity): Promise<SessionChange> {
    return this.change('revoke_session_v1', argsOf(sessionId, required));
  }

  mergeMetadata(
    sessionId: string,
    patch: JsonObject,
    maxBytes: number,
    required?: SessionIdentity,
  ): Promise<SessionChange> {
    const args = { ...argsOf(sessionId, required), patch: encodePatch(patch), max_bytes: maxBytes };
    return this.change('merge_metadata_v1', args);
  }

  async suspendStale(idleMs: number, limit: number): Promise<Session[]> {
    const args = { idle_ms: idleMs, max_sessions: limit };
    return readableRecords(await this.db.call<SqlRow[]>('suspend_stale_v1', args), toSessionFromSql);
  }

  async expireStale({ idleMs, maxMs }: SessionLifetime, limit: number): Promise<SessionChange[]> {
    const args = { idle_ms: idleMs, max_ms: maxMs, max_sessions: limit };
    return readableRecords(await this.db.call<SqlChange[]>('expire_stale_v1', args), toChange);
  }

  purgeExpired(olderThanMs: number, limit: number): Promise<string[]> {
    return this.db.call('purge_expired_v1', { older_than_ms: olderThanMs, max_sessions: limit });
  }

  delete(sessionId: string): Promise<boolean> {
    return this.db.call('delete_session_v1', { id: sessionId });
  }

  erase(sessionId: string, required?: SessionIdentity): Promise<boolean> {
    return this.db.call('erase_session_v1', argsOf(sessionId, required));
  }

  private async createUnless(
    { id, userId, workspaceId, attachedSurfaces, metadata }: NewSession,
    { policy, lifetime }: SurfaceRules,
    recentMs: number | null,
  ): Promise<CreatedSession> {
    const args = {
      id,
      user_id: userId,
      workspace_id: workspaceId,
      surfaces: attachedSurfaces,
      metadata: encodeMetadata(metadata),
      policy,
      recent_ms: recentMs,
      lifetime: lifetimeArgs(lifetime),
    };
    const { session, created, movedFrom } = granted(
      await this.db.call<{ session: SqlRow; created: boolean; movedFrom: SqlRow[] }>('create_session_v1', args),
    );
    return { session: toSessionFromSql(session), created, movedFrom: readableRecords(movedFrom, toSessionFromSql) };
  }

  private async change(operation: string, args: Readonly<Record<string, unknown>>): Promise<SessionChange> {
    return toChange(granted(await this.db.call<SqlChange>(operation, args)));
  }
}

function toChange(change: SqlChange): SessionChange {
  return { ...change, session: toSessionFromSql(change.session) };
}

/** Returns the arguments that select a session. */
function argsOf(sessionId: string, required?: SessionIdentity): Record<string, unknown> {
  return { id: sessionId, ...(required ? { require_session: requiredSession({ requireSession: required }) } : {}) };
}

/** Returns the arguments of is_abandoned_v1. */
function lifetimeArgs({ ttlMs, idleMs, maxMs }: SessionLifetime = {}): Record<string, number | undefined> {
  if (idleMs === undefined) return { max_ms: maxMs };
  return {
    max_ms: maxMs,
    idle_ms: idleMs,
    ...(ttlMs === undefined ? {} : { active_idle_ms: Math.max(idleMs, ttlMs) }),
  };
}

function toSessionArgs(session: Session): Record<string, unknown> {
  return toColumns({ ...toSessionRow(session), metadata: encodeMetadata(session.metadata) });
}

/** Returns the columns of the fields in the patch. */
function toPatch(patch: Partial<Session>): Record<string, unknown> {
  const columns = toSessionArgs({ ...ANY_SESSION, ...patch });
  const named = Object.keys(patch).map((field) => (field === 'attachedSurfaces' ? 'surfaces' : columnName(field)));
  return Object.fromEntries(named.map((column) => [column, columns[column]]));
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
