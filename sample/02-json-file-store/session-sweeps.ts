import { type Session, type SessionChange, type SessionLifetime, sessionLifecycle } from 'nestjs-agent-sessions';
import { changeSession } from './change-session.js';
import { removeSession } from './remove-session.js';
import { type Store } from './store.js';
import { ms } from './tables.js';

export function suspendStale(store: Store, idleMs: number, limit: number): Session[] {
  return upTo(limit, idle(store, 'active', idleMs)).map((session) =>
    store.sessions.put(sessionLifecycle.suspended(session, store.time())),
  );
}

/** Passes over stale sessions that have open turns, one by one. */
export function expireStale(store: Store, lifetime: SessionLifetime, limit: number): SessionChange[] {
  return upTo(limit, over(store, lifetime)).map(({ id }) =>
    changeSession(store, id, (session) => sessionLifecycle.expired(session, store.time())),
  );
}

export function purgeExpired(store: Store, olderThanMs: number, limit: number): string[] {
  const ids = upTo(limit, idle(store, 'expired', olderThanMs)).map(({ id }) => id);
  for (const id of ids) removeSession(store, id);
  return ids;
}

/** The longest in this state first; the index has the last activity of live sessions, and the end of expired ones. */
function* idle(store: Store, state: Session['state'], idleMs: number): Generator<Session> {
  for (const session of store.sessions.by('state', [state])) {
    const since = state === 'expired' ? (session.stateChangedAt ?? session.createdAt) : session.lastActivityAt;
    if (ms(since) >= store.now - idleMs) return;
    yield session;
  }
}

function* over(store: Store, { idleMs, maxMs }: SessionLifetime): Generator<Session> {
  const hasOpenTurns = ({ id }: Session) => store.turns.first('open', [id]) !== undefined;
  const seen = new Set<string>();
  const candidates = [
    ...(idleMs === undefined ? [] : [idle(store, 'created', idleMs), idle(store, 'suspended', idleMs)]),
    ...(maxMs === undefined ? [] : [overAge(store, maxMs)]),
  ];
  for (const sessions of candidates) {
    for (const session of sessions) {
      if (seen.has(session.id) || hasOpenTurns(session)) continue;
      seen.add(session.id);
      yield session;
    }
  }
}

function* overAge(store: Store, maxMs: number): Generator<Session> {
  for (const session of store.sessions.by('age', [])) {
    if (ms(session.createdAt) >= store.now - maxMs) return;
    yield session;
  }
}

function upTo<T>(limit: number, all: Generator<T>): T[] {
  const some: T[] = [];
  while (some.length < limit) {
    const next = all.next();
    if (next.done) break;
    some.push(next.value);
  }
  return some;
}
