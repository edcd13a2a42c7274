import { type JsonValue } from '../../common/json.js';
import { type StateAddress, type StateAppend, type StateBatch, type StateDocument } from '../../state/state.store.js';
import { iso } from '../embedded/row-mapping.js';
import { entries, type Fields, split } from './redis-rows.js';

/** The parts of the address, apart by what no name may hold; see scripts/common.ts. */
export function documentId({ namespace, scope, sessionId, key }: StateAddress): string {
  return [namespace, scope, sessionId, key].join('\u001f');
}

/** What append_document of scripts/documents.ts takes. */
export function appendArgs(address: StateAddress, append: StateAppend): (string | number)[] {
  const { id, entries, initial, ifVersion, ttlMs, fold } = append;
  return [
    documentId(address),
    // As JSON it is one line.
    JSON.stringify(id),
    entries.length === 0 ? '' : JSON.stringify(entries),
    JSON.stringify(initial) ?? '',
    ifVersion ?? '',
    ttlMs ?? '',
    fold?.from ?? '',
    fold?.batches ?? '',
    fold ? JSON.stringify(fold.value) : '',
  ];
}

/** @param fields as scripts/documents.ts describes them */
export function documentOf(fields: Fields): StateDocument {
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
