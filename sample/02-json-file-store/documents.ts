import { SessionNotFoundError, SessionStateError, type StateEntry, type StateStore } from 'nestjs-agent-sessions';
import { appendTo, documentAt, isExpired, live, nothing, put } from './document-rows.js';
import { resetState } from './reset-state.js';
import { type Store } from './store.js';

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
      assertMayWrite(store, address.sessionId, options.requireSession);
      const { version, createdAt } = documentAt(store, address) ?? nothing(store);
      if (options.ifVersion !== undefined && options.ifVersion !== version) return null;
      return put(store, address, { value, batches: [], version: store.nextVersion(version), createdAt }, options);
    }),
  append: (address, append) =>
    store.commit(() => {
      assertMayWrite(store, address.sessionId, append.requireSession);
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

/** Refuses the late writes of a session that is erased; of one that must be there, also when it is not, or is over. */
export function assertMayWrite(store: Store, sessionId: string, requireSession = false): void {
  if (store.erased.get(sessionId)) throw new SessionNotFoundError(sessionId);
  if (!requireSession) return;
  const session = store.sessions.get(sessionId);
  if (!session) throw new SessionNotFoundError(sessionId);
  if (session.state === 'expired') throw new SessionStateError(sessionId, 'expired', 'write state');
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
