import { type Session } from '../../ledger/session.js';
import { toSession } from '../core/row-mapping.js';
import { type SessionRow } from '../core/rows.js';
import { readRecord } from '../core/corrupt-records.js';
import { type SqlRow, toRow } from './postgres-rows.js';

/**
 * Encodes metadata for PostgreSQL: a JSON object whose keys and values are JSON strings, `{"\"plan\"": "\"pro\""}`. SQL can
 * then merge it, and PostgreSQL never parses NULs and lone surrogates, because they are escaped.
 */
export function encodeMetadata(metadata: Readonly<Record<string, unknown>>): string {
  return encode(metadata, (value) => JSON.stringify(value));
}

/** Encodes a patch like encodeMetadata. `null` removes a key. */
export function encodePatch(patch: Readonly<Record<string, unknown>>): string {
  return encode(patch, (value) => (value === null ? null : JSON.stringify(value)));
}

/** Returns a session from its SQL row. */
export function toSessionFromSql(sql: SqlRow): Session {
  const row = toRow<SessionRow>(sql);
  return readRecord('session', row.id, () => ({
    ...toSession({ ...row, metadata: '{}' }),
    metadata: decode(row.metadata),
  }));
}

function encode(
  metadata: Readonly<Record<string, unknown>>,
  encodeValue: (value: unknown) => string | null | undefined,
): string {
  const entries = Object.entries(metadata).map(([key, value]) => [JSON.stringify(key), encodeValue(value)]);
  return JSON.stringify(Object.fromEntries(entries));
}

/** Avoids assignment, because a key may be named __proto__. */
function decode(text: string): Record<string, unknown> {
  const entries = Object.entries(JSON.parse(text) as Record<string, string>);
  return Object.fromEntries(entries.map(([key, value]) => [JSON.parse(key) as string, JSON.parse(value) as unknown]));
}
