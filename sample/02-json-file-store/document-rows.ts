import {
  type StateAccess,
  type StateAddress,
  type StateAppend,
  type StateDocument,
  type StateQuery,
  type StateSelection,
} from 'nestjs-agent-sessions';
import { type Store } from './store.js';
import { bytesOf, ms, placeOf } from './tables.js';

/** Those of a session that have not expired, from a place on. */
export function* live(
  store: Store,
  { sessionId, namespace, scope }: StateSelection,
  from?: StateQuery['after'],
): Generator<{ address: StateAddress; document: StateDocument }> {
  const prefix = [sessionId, namespace, ...(scope === undefined ? [] : [bytesOf(scope)])];
  // A place in another scope is before all of this one, or behind it.
  const inScope = scope === undefined || from?.scope === scope;
  if (!inScope && from && bytesOf(from.scope) > bytesOf(scope)) return;
  const start = from && inScope ? placeOf({ sessionId, namespace, ...from }) : undefined;
  for (const row of store.documents.by('session', prefix, start)) if (!isExpired(store, row.document)) yield row;
}

/** The document, unless its time is over: then it is not there, whether or not it was swept. */
export function documentAt(
  store: Store,
  { namespace, scope, sessionId, key }: StateAddress,
): StateDocument | undefined {
  const document = store.documents.get(namespace, scope, sessionId, key)?.document;
  return document && !isExpired(store, document) ? document : undefined;
}

/** `append` of the port, for a session that is not erased. */
export function appendTo(store: Store, address: StateAddress, append: StateAppend): StateDocument | null {
  const { id, entries, initial, ifVersion, fold } = append;
  const stored = documentAt(store, address);
  if (!stored && initial === undefined) return null;
  const { version, batches, createdAt } = stored ?? nothing(store);
  const isKnown = batches.some((batch) => batch.id === id);
  if (isKnown || (ifVersion !== undefined && ifVersion !== version)) return stored ?? null;

  const foldEnd = fold ? batches.findIndex((batch) => batch.id === fold.through) + 1 : 0;
  const value = fold && foldEnd > 0 ? fold.value : stored ? stored.value : initial!;
  const added = entries.length > 0 ? [{ id, at: store.time(), entries }] : [];
  const document = {
    value,
    batches: [...batches.slice(foldEnd), ...added],
    // A document that is created has a version, also without a batch.
    version: added.length > 0 || !stored ? store.nextVersion(version) : version,
    createdAt,
  };
  return put(store, address, document, stored && append.keepExpiry ? timeLeft(store, stored) : append);
}

/** What a document begins from. */
export function nothing(store: Store): Pick<StateDocument, 'batches' | 'version' | 'createdAt'> {
  return { batches: [], version: 0, createdAt: store.time() };
}

/** So that it expires when it did. */
function timeLeft(store: Store, { expiresAt }: StateDocument): StateAccess {
  return expiresAt === undefined ? {} : { ttlMs: ms(expiresAt) - store.now };
}

export function isExpired(store: Store, { expiresAt }: StateDocument): boolean {
  return expiresAt !== undefined && ms(expiresAt) <= store.now;
}

export function put(
  store: Store,
  address: StateAddress,
  { value, batches, version, createdAt }: Omit<StateDocument, 'accessedAt' | 'expiresAt'>,
  { ttlMs }: StateAccess,
): StateDocument {
  const times = { accessedAt: store.time(), expiresAt: ttlMs === undefined ? undefined : store.time(ttlMs) };
  return store.documents.put({ address, document: { value, batches, version, createdAt, ...times } }).document;
}
