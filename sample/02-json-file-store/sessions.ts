import {
  type AtomicSessionStoreAdapter,
  type NewSession,
  type Session,
  type SessionChange,
  SessionConflictError,
  sessionLifecycle as lifecycle,
  SessionNotFoundError,
  type SurfaceRules,
} from 'nestjs-agent-sessions';
import { cancelParked } from './lane.js';
import { removeSession } from './remove-session.js';
import { countSessions, findSessions } from './session-query.js';
import { expireStale, purgeExpired, suspendStale } from './session-sweeps.js';
import { type Store } from './store.js';
import { adoptable, claimSurfaces } from './surfaces.js';

export const sessionsPort = (store: Store): AtomicSessionStoreAdapter => {
  const create = (draft: NewSession, rules: SurfaceRules) => {
    assertIdFree(store, draft.id);
    const movedFrom = claimSurfaces(store, draft, draft.attachedSurfaces, rules);
    return { session: store.sessions.put(lifecycle.newSession(draft, store.time())), created: true, movedFrom };
  };

  return {
    insert: (session) =>
      store.commit(() => {
        assertIdFree(store, session.id);
        store.sessions.put(session);
      }),
    update: (id, patch) => store.commit(() => store.sessions.put({ ...sessionOf(store, id), ...patch })),
    delete: (id) => store.commit(() => removeSession(store, id)),
    erase: (id) =>
      store.commit(() => {
        removeSession(store, id);
        store.erased.put({ sessionId: id });
      }),

    fetchById: (id) => store.read(() => store.sessions.get(id) ?? null),
    fetchMany: (query) => store.read(() => findSessions(store, query)),
    count: (query) => store.read(() => countSessions(store, query)),

    create: (draft, rules) => store.commit(() => create(draft, rules)),
    createOrAdopt: (draft, rules, recentMs) =>
      store.commit(() => {
        const session = adoptable(store, draft, recentMs);
        return session ? { session, created: false, movedFrom: [] } : create(draft, rules);
      }),

    touch: (id, maxLifetimeMs) =>
      store.commit(() => change(store, id, (session) => lifecycle.touched(session, store.time(), maxLifetimeMs))),
    mergeMetadata: (id, patch, maxBytes) =>
      store.commit(() => change(store, id, (session) => lifecycle.withMetadata(session, patch, maxBytes))),
    detachSurface: (id, surfaceId) =>
      store.commit(() => change(store, id, (session) => lifecycle.withoutSurface(session, surfaceId))),
    attachSurface: (id, surfaceId, rules) =>
      store.commit(() => {
        const attach = (session: Session) => lifecycle.withSurface(session, surfaceId, rules.maxSurfaces);
        const changed = change(store, id, attach);
        return { ...changed, movedFrom: claimSurfaces(store, changed.session, [surfaceId], rules) };
      }),
    expire: (id) =>
      store.commit(() => {
        const changed = change(store, id, (session) => lifecycle.expired(session, store.time()));
        cancelParked(store, id);
        return changed;
      }),

    suspendStale: (idleMs, limit) => store.commit(() => suspendStale(store, idleMs, limit)),
    expireStale: (lifetime, limit) => store.commit(() => expireStale(store, lifetime, limit)),
    purgeExpired: (olderThanMs, limit) => store.commit(() => purgeExpired(store, olderThanMs, limit)),
  };
};

/** Stores what `rule` makes of the session, unless that is the same object: then there is nothing to write. */
export function change(store: Store, id: string, rule: (session: Session) => Session): SessionChange {
  const before = sessionOf(store, id);
  const after = rule(before);
  const changed = after !== before;
  return { session: changed ? store.sessions.put(after) : before, previousState: before.state, changed };
}

function sessionOf(store: Store, id: string): Session {
  const session = store.sessions.get(id);
  if (!session) throw new SessionNotFoundError(id);
  return session;
}

function assertIdFree(store: Store, id: string): void {
  if (store.sessions.get(id) || store.erased.get(id)) throw new SessionConflictError(id);
}
