import {
  SessionNotFoundError,
  type StateAccess,
  type StateAddress,
  type StateAppend,
  type StateDocument,
  type StateEntry,
  type StateQuery,
  type StateSelection,
  type StateStore,
} from 'nestjs-agent-sessions';
import { resetState } from './reset-state.js';
import { type Store } from './store.js';
import { bytesOf, ms, placeOf } from './tables.js';

export const documentsPort = (store: Store): StateStore => ({
  get: (address, access) =>
    access
      ? store.commit(() => {
          const document = documentAt(store, address);
          return document ? put(store, address, document, access) : null;
        })
      : store.read(() => documentAt(store, address) ?? null),
  set: (address, value, options = {}) =>
    store.commit(() => {
      if (store.erased.get(address.sessionId)) throw new SessionNotFoundError(address.sessionId);
      const { version, createdAt } = documentAt(store, address) ?? nothing(store);
      if (options.ifVersion !== undefined && options.ifVersion !== version) return null;
      return put(store, address, { value, batches: [], version: version + 1, createdAt }, options);
    }),
  append: (address, append) =>
    store.commit(() => {
      if (store.erased.get(address.sessionId)) throw new SessionNotFoundError(address.sessionId);
      return appendTo(store, address, append);
    }),
  delete: (address) =>
    store.commit(() => {
      const document = documentAt(store, address);
      if (document) store.documents.delete({ address, document });
      return document !== undefined;
    }),
  list: ({ limit, after, ...selection }) =>
    store.read(() => {
      const entries: StateEntry[] = [];
      for (const { address, document } of live(store, selection, after)) {
        if (entries.length >= limit) break;
        const { scope, key } = address;
        if (scope !== after?.scope || key !== after.key) entries.push({ scope, key, document });
      }
      return entries;
    }),
  count: (selection) => store.read(() => [...live(store, selection)].length),
  namespaces: (sessionId) => store.read(() => namespacesOf(store, sessionId)),
  reset: (reset) => store.commit(() => resetState(store, reset)),
  deleteExpired: (limit) =>
    store.commit(() => {
      let deleted = 0;
      for (const row of store.documents.by('expiry', [])) {
        if (deleted >= limit || !isExpired(store, row.document)) break;
        store.documents.delete(row);
        deleted++;
      }
      return deleted;
    }),
  evictIdle: (namespace, keep, limit) =>
    store.commit(() => {
      const live = [...store.documents.by('access', [namespace])].filter(({ document }) => !isExpired(store, document));
      const idle = live.slice(0, Math.min(limit, Math.max(0, live.length - keep)));
      for (const row of idle) store.documents.delete(row);
      return idle.length;
    }),
});

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
    // A document begins with version 1, also without a batch.
    version: Math.max(1, version + added.length),
    createdAt,
  };
  return put(store, address, document, stored && append.keepExpiry ? timeLeft(store, stored) : append);
}

/** What a document begins from. */
function nothing(store: Store): Pick<StateDocument, 'batches' | 'version' | 'createdAt'> {
  return { batches: [], version: 0, createdAt: store.time() };
}

/** So that it expires when it did. */
function timeLeft(store: Store, { expiresAt }: StateDocument): StateAccess {
  return expiresAt === undefined ? {} : { ttlMs: ms(expiresAt) - store.now };
}

function isExpired(store: Store, { expiresAt }: StateDocument): boolean {
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

/** Behind every place of a namespace: places are hexadecimal. */
const BEYOND = '~';

/** Goes from one namespace to the next, past the documents in each. */
function namespacesOf(store: Store, sessionId: string): string[] {
  const found: string[] = [];
  for (let next = store.documents.first('session', [sessionId]); next;) {
    const { namespace } = next.address;
    found.push(namespace);
    next = store.documents.first('session', [sessionId], [sessionId, namespace, BEYOND]);
  }
  return found;
}
