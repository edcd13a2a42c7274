import {
  type StateAccess,
  type StateAddress,
  type StateAppend,
  type StateBatch,
  type StateDocument,
} from '../../state/state.store.js';
import { iso, toDocument } from './row-mapping.js';
import { type DocumentRow } from './rows.js';
import { type Transaction } from './tables.js';

/** What stands at an address. */
export type DocumentContent = Omit<DocumentRow, keyof StateAddress>;

/** One that has expired is not there. */
export function liveDocument(tx: Transaction, address: StateAddress): DocumentRow | undefined {
  const row = tx.documents.get(address);
  return row && (row.expiresAt === null || row.expiresAt > tx.now) ? row : undefined;
}

/** What an access of now changes. */
export function accessed(tx: Transaction, { ttlMs }: StateAccess): Pick<DocumentRow, 'accessedAt' | 'expiresAt'> {
  return { accessedAt: tx.now, expiresAt: ttlMs === undefined ? null : tx.now + ttlMs };
}

/** @returns what is stored now */
export function putDocument(tx: Transaction, address: StateAddress, content: DocumentContent): StateDocument {
  const { namespace, scope, sessionId, key } = address;
  // One that has expired still takes up the key.
  if (tx.documents.get(address)) tx.documents.update(address, content);
  else tx.documents.insert({ namespace, scope, sessionId, key, ...content });
  return toDocument(content);
}

/** StateStore.append, for a session that is not erased. */
export function appendToDocument(tx: Transaction, address: StateAddress, append: StateAppend): StateDocument | null {
  const { id, entries, initial, ifVersion } = append;
  const stored = liveDocument(tx, address);
  if (!stored && initial === undefined) return null;
  const base = stored ?? emptyDocument(tx, JSON.stringify(initial));
  const batches = JSON.parse(base.batches) as StateBatch[];
  if (batches.some((batch) => batch.id === id) || (ifVersion !== undefined && ifVersion !== base.version)) {
    return stored ? toDocument(stored) : null;
  }
  const { value, rest } = folded(base, batches, append);
  const added: StateBatch[] = entries.length > 0 ? [{ id, at: iso(tx.now), entries }] : [];
  return putDocument(tx, address, {
    value,
    batches: JSON.stringify([...rest, ...added]),
    // One that is made begins with version 1, also without a batch.
    version: Math.max(1, base.version + added.length),
    createdAt: base.createdAt,
    ...accessed(tx, append),
  });
}

/** What an append that makes a document begins with. */
function emptyDocument(tx: Transaction, value: string): DocumentContent {
  return { value, batches: '[]', version: 0, createdAt: tx.now, accessedAt: tx.now, expiresAt: null };
}

function folded(
  { value, version }: DocumentContent,
  batches: readonly StateBatch[],
  { fold }: StateAppend,
): { value: string; rest: readonly StateBatch[] } {
  const fits = fold?.from === version - batches.length && fold.batches >= 1 && fold.batches <= batches.length;
  return fits ? { value: JSON.stringify(fold.value), rest: batches.slice(fold.batches) } : { value, rest: batches };
}
