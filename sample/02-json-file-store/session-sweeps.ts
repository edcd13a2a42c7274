import { type Session, type SessionChange, type SessionLifetime, sessionLifecycle } from 'nestjs-agent-sessions';
import { changeSession } from './change-session.js';
import { removeSession } from './remove-session.js';
import { type Store } from './store.js';
import { ms, stateSince } from './tables.js';

export function suspendStale(store: Store, idleMs: number, limit: number): Session[] {
  return upTo(limit, idle(store, 'active', idleMs), (session) =>
    store.sessions.put(sessionLifecycle.suspended(session, store.time())),
  );
}

export function expireStale(store: Store, lifetime: SessionLifetime, limit: number): SessionChange[] {
  return upTo(limit, over(store, lifetime), ({ id }) =>
    changeSession(store, id, (session) => sessionLifecycle.expired(session, store.time())),
  );
}

export function purgeExpired(store: Store, olderThanMs: number, limit: number): string[] {
  return upTo(limit, idle(store, 'expired', olderThanMs), ({ id }) => {
    removeSession(store, id);
    return id;
  });
}

/** Those that are idle, or expired, for longer than `idleMs`; the longest first. */
function* idle(store: Store, state: Session['state'], idleMs: number): Generator<Session> {
  for (const session of store.sessions.by('state', [state])) {
    if (ms(stateSince(session)!) >= store.now - idleMs) return;
    yield session;
  }
}

/** Passes over those that have open turns, one by one. */
function* over(store: Store, lifetime: SessionLifetime): Generator<Session> {
  for (const session of stale(store, lifetime)) {
    if (!store.turns.first('open', [session.id])) yield session;
  }
}

function* stale(store: Store, { idleMs, maxMs }: SessionLifetime): Generator<Session> {
  if (idleMs !== undefined) {
    yield* idle(store, 'created', idleMs);
    yield* idle(store, 'suspended', idleMs);
  }
  if (maxMs === undefined) return;
  for (const session of store.sessions.by('age', [])) {
    if (ms(session.createdAt) >= store.now - maxMs) return;
    yield session;
  }
}

/** Each is changed before the next one is looked for, so none comes twice. */
function upTo<T, R>(limit: number, items: Generator<T>, change: (item: T) => R): R[] {
  const changed: R[] = [];
  while (changed.length < limit) {
    const next = items.next();
    if (next.done) break;
    changed.push(change(next.value));
  }
  return changed;
}
