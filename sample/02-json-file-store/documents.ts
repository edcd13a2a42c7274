import {
  SessionNotFoundError,
  type StateAccess,
  type StateAddress,
  type StateAppend,
  type StateDocument,
  type StateStore,
} from 'nestjs-agent-sessions';
import { type Store } from './store.js';
import { ms } from './tables.js';

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

  const fits = fold?.from === version - batches.length && fold.batches >= 1 && fold.batches <= batches.length;
  const value = fits ? fold.value : stored ? stored.value : initial!;
  const added = entries.length > 0 ? [{ id, at: store.time(), entries }] : [];
  const document = {
    value,
    batches: [...batches.slice(fits ? fold.batches : 0), ...added],
    // A document begins with version 1, also without a batch.
    version: Math.max(1, version + added.length),
    createdAt,
  };
  return put(store, address, document, append);
}

/** What a document begins from. */
function nothing(store: Store): Pick<StateDocument, 'batches' | 'version' | 'createdAt'> {
  return { batches: [], version: 0, createdAt: store.time() };
}

function isExpired(store: Store, { expiresAt }: StateDocument): boolean {
  return expiresAt !== undefined && ms(expiresAt) <= store.now;
}

function put(
  store: Store,
  address: StateAddress,
  { value, batches, version, createdAt }: Omit<StateDocument, 'accessedAt' | 'expiresAt'>,
  { ttlMs }: StateAccess,
): StateDocument {
  const times = { accessedAt: store.time(), expiresAt: ttlMs === undefined ? undefined : store.time(ttlMs) };
  return store.documents.put({ address, document: { value, batches, version, createdAt, ...times } }).document;
}
