import {
  type AtomicSessionStoreAdapter,
  type NewSession,
  type Session,
  SessionConflictError,
  sessionLifecycle as lifecycle,
  type SurfaceRules,
} from 'nestjs-agent-sessions';
import { changeSession, sessionOf, touchSession } from './change-session.js';
import { cancelParked, markTurn } from './change-turn.js';
import { headOf } from './lane.js';
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

  const expire = (id: string) => {
    const changed = changeSession(store, id, (session) => lifecycle.expired(session, store.time()));
    cancelParked(store, id);
    return changed;
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
        store.erased.put({ sessionId: id });
        return removeSession(store, id);
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

    touch: (id, lifetime) => store.commit(() => touchSession(store, id, lifetime)),
    mergeMetadata: (id, patch, maxBytes) =>
      store.commit(() => changeSession(store, id, (session) => lifecycle.withMetadata(session, patch, maxBytes))),
    detachSurface: (id, surfaceId) =>
      store.commit(() => changeSession(store, id, (session) => lifecycle.withoutSurface(session, surfaceId))),
    attachSurface: (id, surfaceId, rules) =>
      store.commit(() => {
        const before = sessionOf(store, id);
        const attach = (session: Session) => lifecycle.withSurface(session, surfaceId, store.time(), rules);
        const changed = changeSession(store, id, attach);
        if (!changed.changed) return { ...changed, movedFrom: [], detached: [] };
        const movedFrom = claimSurfaces(store, changed.session, [surfaceId], rules);
        return { ...changed, movedFrom, detached: lifecycle.detachedSurfaces(before, changed.session) };
      }),
    expire: (id) => store.commit(() => expire(id)),
    revoke: (id) =>
      store.commit(() => {
        const changed = expire(id);
        const head = headOf(store, id);
        if (head?.turn.status === 'running') markTurn(store, head, 'cancel');
        return changed;
      }),

    suspendStale: (idleMs, limit) => store.commit(() => suspendStale(store, idleMs, limit)),
    expireStale: (lifetime, limit) => store.commit(() => expireStale(store, lifetime, limit)),
    purgeExpired: (olderThanMs, limit) => store.commit(() => purgeExpired(store, olderThanMs, limit)),
  };
};

function assertIdFree(store: Store, id: string): void {
  if (store.sessions.get(id) || store.erased.get(id)) throw new SessionConflictError(id);
}
