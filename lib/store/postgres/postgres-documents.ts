import { type JsonValue } from '../../common/json.js';
import {
  type StateAddress,
  type StateAppend,
  type StateBatch,
  type StateDocument,
  type StateOwnership,
} from '../../ledger/state.store.js';
import { readRecord } from '../core/corrupt-records.js';
import { iso } from '../core/iso.js';
import { toDocument } from '../core/row-mapping.js';

/** A document as the functions return it. */
export interface SqlDocument {
  readonly value: string;
  readonly batches: readonly SqlBatch[];
  readonly version: number;
  readonly created_at: number;
  readonly accessed_at: number;
  readonly expires_at: number | null;
}

/** A batch. Its entries are JSON strings; see PostgresDatabase. */
interface SqlBatch {
  readonly id: string;
  readonly at: number;
  readonly entries: string;
}

export function addressArgs({ namespace, scope, sessionId, key }: StateAddress): Record<string, unknown> {
  return { namespace, scope, session_id: sessionId, key };
}

/** Returns the argument `require_session` of functions. */
export function requiredSession({ requireSession }: StateOwnership): unknown {
  if (typeof requireSession !== 'object') return requireSession;
  return { created_at: Date.parse(requireSession.createdAt), user_id: requireSession.userId };
}

/** Returns the arguments of `append_to_document`. */
export function appendArgs(address: StateAddress, append: StateAppend): Record<string, unknown> {
  const { id, entries, initial, ifVersion, ttlMs, keepExpiry, fold } = append;
  return {
    ...addressArgs(address),
    id,
    entries: entries.length > 0 ? JSON.stringify(entries) : undefined,
    initial: JSON.stringify(initial),
    if_version: ifVersion,
    ttl_ms: ttlMs,
    keep_expiry: keepExpiry,
    require_session: requiredSession(append),
    fold_through: fold?.through,
    fold_value: JSON.stringify(fold?.value),
  };
}

/** @param key the document's key, for error messages */
export function toDocumentFromSql(sql: SqlDocument, key = ''): StateDocument {
  return readRecord('document', key, () => documentOf(sql, key));
}

function documentOf(sql: SqlDocument, key: string): StateDocument {
  const { value, version, created_at: createdAt, accessed_at: accessedAt, expires_at: expiresAt } = sql;
  const document = toDocument({ key, value, batches: '[]', version, createdAt, accessedAt, expiresAt });
  return { ...document, batches: sql.batches.map(toBatch) };
}

function toBatch({ id, at, entries }: SqlBatch): StateBatch {
  return { id, at: iso(at), entries: JSON.parse(entries) as JsonValue[] };
}
