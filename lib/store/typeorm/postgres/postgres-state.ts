import { type JsonValue } from '../../../common/json.js';
import {
  type StateAddress,
  type StateDocument,
  type StateStore,
  type StateWriteOptions,
} from '../../../state/state.store.js';
import { iso } from '../../embedded/row-mapping.js';
import { type DocumentRow } from '../../embedded/rows.js';
import { type PostgresDatabase } from './postgres-database.js';
import { granted } from './postgres-refusals.js';
import { type SqlRow, toRow } from './postgres-rows.js';

/** State documents in PostgreSQL. */
export class PostgresState implements StateStore {
  constructor(private readonly db: PostgresDatabase) {}

  async get({ namespace, scope, sessionId, key }: StateAddress): Promise<StateDocument | null> {
    const [found] = await this.db.query<{ row: SqlRow } | undefined>(
      `SELECT row_to_json(document) AS row FROM {document} AS document
       WHERE namespace = $1 AND scope = $2 AND session_id = $3 AND key = $4
         AND (expires_at IS NULL OR expires_at > {now_v1}())`,
      [namespace, scope, sessionId, key],
    );
    return found ? toDocument(found.row) : null;
  }

  async set(address: StateAddress, value: JsonValue, options: StateWriteOptions = {}): Promise<StateDocument | null> {
    const { ifVersion, ttlMs } = options;
    const written = { ...toArgs(address), value: JSON.stringify(value), if_version: ifVersion, ttl_ms: ttlMs };
    const stored = await this.db.call<SqlRow | null>('set_document_v1', written);
    return stored && toDocument(granted(stored));
  }

  extend(address: StateAddress, ttlMs: number): Promise<boolean> {
    return this.db.call('extend_document_v1', { ...toArgs(address), ttl_ms: ttlMs });
  }

  delete(address: StateAddress): Promise<boolean> {
    return this.db.call('delete_document_v1', toArgs(address));
  }

  deleteExpired(limit: number): Promise<number> {
    return this.db.call('delete_expired_documents_v1', { max_documents: limit });
  }
}

function toArgs({ namespace, scope, sessionId, key }: StateAddress): Record<string, unknown> {
  return { namespace, scope, session_id: sessionId, key };
}

function toDocument(sql: SqlRow): StateDocument {
  const { value, version, expiresAt } = toRow<DocumentRow>(sql);
  return {
    value: JSON.parse(value) as JsonValue,
    version,
    ...(expiresAt === null ? {} : { expiresAt: iso(expiresAt) }),
  };
}
