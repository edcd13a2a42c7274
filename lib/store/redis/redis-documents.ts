import { type JsonValue } from '../../common/json.js';
import {
  type StateAddress,
  type StateAppend,
  type StateBatch,
  type StateDocument,
  type StateEntry,
  type StateOwnership,
  type StateQuery,
  type StateSelection,
} from '../../ledger/state.store.js';
import { readRecord } from '../core/corrupt-records.js';
import { iso } from '../core/iso.js';
import { entries, type Fields, split } from './redis-rows.js';

/** Separates the parts of an address. Names cannot contain it; see scripts/include/common.lua. */
const SEPARATOR = '\u001f';

export function documentId({ namespace, scope, sessionId, key }: StateAddress): string {
  return [namespace, scope, sessionId, key].join(SEPARATOR);
}

/** Returns the prefix of the ids of the selected documents. */
export function documentPrefix({ namespace, scope, sessionId }: StateSelection): string {
  const parts = scope === undefined ? [namespace] : [namespace, scope, sessionId];
  return [...parts, ''].join(SEPARATOR);
}

/** Returns the id after which the page starts, or '' to start at the first id. */
export function documentBefore({ after, limit: _, ...selection }: StateQuery): string {
  const id = after ? documentId({ ...selection, ...after }) : '';
  // `after` may be in a scope that sorts before the selection.
  return Buffer.compare(Buffer.from(id), Buffer.from(documentPrefix(selection))) > 0 ? id : '';
}

export function entryOf([id, fields]: readonly [id: string, fields: Fields]): StateEntry {
  const [, scope, , key] = id.split(SEPARATOR);
  return { scope, key, document: documentOf(fields, key) };
}

/** Returns the argument of state_refusal and of is_other_session in scripts/include. */
export function requiredSession({ requireSession = false }: StateOwnership): string | number {
  if (typeof requireSession !== 'object') return requireSession ? 1 : '';
  return `${Date.parse(requireSession.createdAt)}:${requireSession.userId}`;
}

/** Returns the arguments of append_document in scripts/include/documents.lua. */
export function appendArgs(address: StateAddress, append: StateAppend): (string | number)[] {
  const { id, entries, initial, ifVersion, ttlMs, keepExpiry, fold } = append;
  return [
    documentId(address),
    // JSON keeps the id on one line.
    JSON.stringify(id),
    entries.length === 0 ? '' : JSON.stringify(entries),
    JSON.stringify(initial) ?? '',
    ifVersion ?? '',
    ttlMs ?? '',
    keepExpiry ? 1 : '',
    fold ? JSON.stringify(fold.through) : '',
    fold ? JSON.stringify(fold.value) : '',
  ];
}

/** @param fields see scripts/include/documents.lua. @param key the document's key, for error messages */
export function documentOf(fields: Fields, key = ''): StateDocument {
  return readRecord('document', key, () => readDocument(fields));
}

function readDocument(fields: Fields): StateDocument {
  const row = new Map(entries(fields, new Set()));
  const text = (field: string): string => String(row.get(field));
  const time = (field: string): string => iso(Number(row.get(field)));
  const version = Number(row.get('version'));
  const batches: StateBatch[] = [];
  for (let of = Number(row.get('valueVersion')) + 1; of <= version; of += 1) batches.push(batchOf(text(String(of))));
  return {
    value: JSON.parse(text('value')) as JsonValue,
    batches,
    version,
    createdAt: time('createdAt'),
    accessedAt: time('accessedAt'),
    ...(row.has('expiresAt') ? { expiresAt: time('expiresAt') } : {}),
  };
}

function batchOf(stored: string): StateBatch {
  const [at, id, text] = split(stored, 2);
  return { id: JSON.parse(id) as string, at: iso(Number(at)), entries: JSON.parse(text) as JsonValue[] };
}
