import { type JsonValue } from '../../common/json.js';
import {
  type StateAccess,
  type StateAddress,
  type StateAppend,
  type StateCleared,
  type StateDocument,
  type StateEntry,
  type StateQuery,
  type StateReset,
  type StateSelection,
  type StateStore,
  type StateWriteOptions,
} from '../../ledger/state.store.js';
import { readableList, readAll } from '../core/corrupt-records.js';
import { type PostgresDatabase } from './postgres-database.js';
import { addressArgs, appendArgs, requiredSession, type SqlDocument, toDocumentFromSql } from './postgres-documents.js';
import { granted } from './postgres-refusals.js';

/** Stores state documents in PostgreSQL. */
export class PostgresState implements StateStore {
  constructor(private readonly db: PostgresDatabase) {}

  async get(address: StateAddress, access?: StateAccess): Promise<StateDocument | null> {
    if (access) return this.call('access_document_v1', { ...addressArgs(address), ttl_ms: access.ttlMs });
    const { namespace, scope, sessionId, key } = address;
    const [found] = await this.db.query<{ row: SqlDocument } | undefined>(
      `SELECT {shown_document_v1}(document) AS row FROM {document} AS document
       WHERE namespace = $1 AND scope = $2 AND session_id = $3 AND key = $4
         AND (expires_at IS NULL OR expires_at > {now_v1}())`,
      [namespace, scope, sessionId, key],
    );
    return found ? toDocumentFromSql(found.row, key) : null;
  }

  set(address: StateAddress, value: JsonValue, options: StateWriteOptions = {}): Promise<StateDocument | null> {
    const { ifVersion, ttlMs } = options;
    const written = {
      value: JSON.stringify(value),
      if_version: ifVersion,
      ttl_ms: ttlMs,
      require_session: requiredSession(options),
    };
    return this.call('set_document_v1', { ...addressArgs(address), ...written });
  }

  append(address: StateAddress, append: StateAppend): Promise<StateDocument | null> {
    return this.call('append_document_v1', appendArgs(address, append));
  }

  delete(address: StateAddress): Promise<boolean> {
    return this.db.call('delete_document_v1', addressArgs(address));
  }

  async list({ after, limit, ...selection }: StateQuery): Promise<StateEntry[]> {
    return readableList(limit, async (most) => {
      const { where, values } = liveOnes(selection, after);
      const rows = await this.db.query<{ scope: string; key: string; row: SqlDocument }>(
        `SELECT scope, key, {shown_document_v1}(document) AS row FROM {document} AS document
         ${where} ORDER BY scope, key LIMIT $${values.push(most)}`,
        values,
      );
      return readAll(rows, ({ scope, key, row }) => ({ scope, key, document: toDocumentFromSql(row, key) }));
    });
  }

  async count(selection: StateSelection): Promise<number> {
    const { where, values } = liveOnes(selection);
    const sql = `SELECT count(*)::int AS count FROM {document} ${where}`;
    const [{ count }] = await this.db.query<{ count: number }>(sql, values);
    return count;
  }

  namespaces(sessionId: string): Promise<string[]> {
    return this.db.names('document', 'namespace', sessionId);
  }

  reset({ sessionId, namespaces, epoch, log }: StateReset): Promise<StateCleared | null> {
    return this.db.call('reset_state_v1', {
      session_id: sessionId,
      namespaces,
      epoch,
      head: log && { ...addressArgs({ ...log.head, sessionId }), value: JSON.stringify(log.value) },
      if_version: log?.ifVersion,
    });
  }

  deleteExpired(limit: number): Promise<number> {
    return this.db.call('delete_expired_documents_v1', { max_documents: limit });
  }

  evictIdle(namespace: string, keep: number, limit: number): Promise<number> {
    return this.db.call('evict_idle_documents_v1', { namespace, keep, max_documents: limit });
  }

  private async call(operation: string, args: Readonly<Record<string, unknown>>): Promise<StateDocument | null> {
    const stored = await this.db.call<SqlDocument | null>(operation, args);
    return stored && toDocumentFromSql(granted(stored));
  }
}

/** Returns the condition for live documents of a selection after a position. */
function liveOnes(
  { sessionId, namespace, scope }: StateSelection,
  after?: StateQuery['after'],
): { where: string; values: unknown[] } {
  const values: unknown[] = [sessionId, namespace];
  const terms = ['session_id = $1', 'namespace = $2', '(expires_at IS NULL OR expires_at > {now_v1}())'];
  const value = (given: unknown): string => `$${values.push(given)}`;
  if (scope !== undefined) terms.push(`scope = ${value(scope)}`);
  // In one scope the index finds the key. For a (scope, key) pair, it would scan the scope from its start.
  if (after && after.scope === scope) terms.push(`key > ${value(after.key)}`);
  else if (after) terms.push(`(scope, key) > (${value(after.scope)}, ${value(after.key)})`);
  return { where: `WHERE ${terms.join(' AND ')}`, values };
}
