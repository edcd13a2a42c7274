import { SessionNotFoundError, type StateAddress, type StateDocument, type StateStore } from 'nestjs-agent-sessions';
import { type Store } from './store.js';
import { ms } from './tables.js';

export const documentsPort = (store: Store): StateStore => ({
  get: (address) => store.read(() => documentAt(store, address) ?? null),
  set: (address, value, { ifVersion, ttlMs } = {}) =>
    store.commit(() => {
      if (store.erased.get(address.sessionId)) throw new SessionNotFoundError(address.sessionId);
      const version = documentAt(store, address)?.version ?? 0;
      if (ifVersion !== undefined && ifVersion !== version) return null;
      return put(store, address, { value, version: version + 1 }, ttlMs);
    }),
  extend: (address, ttlMs) =>
    store.commit(() => {
      const document = documentAt(store, address);
      if (document) put(store, address, document, ttlMs);
      return document !== undefined;
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
});

/** The document, unless its time is over: then it is not there, whether or not it was swept. */
function documentAt(store: Store, { namespace, scope, sessionId, key }: StateAddress): StateDocument | undefined {
  const document = store.documents.get(namespace, scope, sessionId, key)?.document;
  return document && !isExpired(store, document) ? document : undefined;
}

function isExpired(store: Store, { expiresAt }: StateDocument): boolean {
  return expiresAt !== undefined && ms(expiresAt) <= store.now;
}

function put(store: Store, address: StateAddress, document: StateDocument, ttlMs: number | undefined): StateDocument {
  const expiresAt = ttlMs === undefined ? undefined : store.time(ttlMs);
  return store.documents.put({ address, document: { ...document, expiresAt } }).document;
}
