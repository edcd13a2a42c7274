import {
  type StateAccess,
  type StateAddress,
  type StateAppend,
  type StateBatch,
  type StateChange,
  type StateDocument,
  type StateName,
} from '../../ledger/state.store.js';
import { iso } from './iso.js';
import { toDocument } from './row-mapping.js';
import { type DocumentRow } from './rows.js';
import { type Transaction } from './tables.js';

/** The content at an address. */
export type DocumentContent = Omit<DocumentRow, keyof StateAddress>;

/** Returns the document, unless it has expired. */
export function liveDocument(tx: Transaction, address: StateAddress): DocumentRow | undefined {
  return unlessExpired(tx, tx.documents.get(address));
}

/** Announces the documents that {@link readDocuments} will read. */
export function expectDocuments(tx: Transaction, sessionId: string, names: readonly StateName[]): void {
  tx.documents.expect(names.map((name) => ({ sessionId, ...name })));
}

/** Returns documents of one session, in the order of the names. */
export function readDocuments(
  tx: Transaction,
  sessionId: string,
  names: readonly StateName[],
): (StateDocument | null)[] {
  return tx.documents.getAll(names.map((name) => ({ sessionId, ...name }))).map((row) => {
    const live = unlessExpired(tx, row);
    return live ? toDocument(live) : null;
  });
}

/** Returns the columns that an access changes. */
export function accessed(tx: Transaction, { ttlMs }: StateAccess): Pick<DocumentRow, 'accessedAt' | 'expiresAt'> {
  return { accessedAt: tx.now, expiresAt: ttlMs === undefined ? null : tx.now + ttlMs };
}

/** @returns the stored document */
export function putDocument(tx: Transaction, address: StateAddress, content: DocumentContent): StateDocument {
  const { namespace, scope, sessionId, key } = address;
  // An expired document still occupies the key.
  if (tx.documents.get(address)) tx.documents.update(address, content);
  else tx.documents.insert({ namespace, scope, sessionId, key, ...content });
  return toDocument(content);
}

/** Implements StateStore.append for a session that is not erased. */
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
    // A new document gets a version even without a batch.
    version: added.length > 0 || !stored ? tx.nextVersion(base.version) : base.version,
    createdAt: base.createdAt,
    ...accessed(tx, append),
    ...(stored && append.keepExpiry ? { expiresAt: stored.expiresAt } : {}),
  });
}

/** Calls appendToDocument for several documents of one session. */
export function applyStateChanges(tx: Transaction, sessionId: string, changes: readonly StateChange[]): void {
  const addresses = changes.map(({ name }) => ({ sessionId, ...name }));
  // Loads all documents in one query, if the table is remote.
  tx.documents.getAll(addresses);
  for (const [index, { append }] of changes.entries()) appendToDocument(tx, addresses[index], append);
}

function unlessExpired(tx: Transaction, row: DocumentRow | undefined): DocumentRow | undefined {
  return row && (row.expiresAt === null || row.expiresAt > tx.now) ? row : undefined;
}

/** Returns the initial content of a document that an append creates. */
function emptyDocument(tx: Transaction, value: string): DocumentContent {
  return { value, batches: '[]', version: 0, createdAt: tx.now, accessedAt: tx.now, expiresAt: null };
}

function folded(
  { value }: DocumentContent,
  batches: readonly StateBatch[],
  { fold }: StateAppend,
): { value: string; rest: readonly StateBatch[] } {
  const end = fold ? batches.findIndex(({ id }) => id === fold.through) + 1 : 0;
  return fold && end > 0 ? { value: JSON.stringify(fold.value), rest: batches.slice(end) } : { value, rest: batches };
}
