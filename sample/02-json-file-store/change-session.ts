import {
  type Session,
  type SessionChange,
  type SessionLifetime,
  sessionLifecycle,
  SessionNotFoundError,
} from 'nestjs-agent-sessions';
import { type Store } from './store.js';

export function sessionOf(store: Store, id: string): Session {
  const session = store.sessions.get(id);
  if (!session) throw new SessionNotFoundError(id);
  return session;
}

/** Stores what `rule` makes of the session, unless that is the same object: then there is nothing to write. */
export function changeSession(store: Store, id: string, rule: (session: Session) => Session): SessionChange {
  const before = sessionOf(store, id);
  const after = rule(before);
  const changed = after !== before;
  return { session: changed ? store.sessions.put(after) : before, previousState: before.state, changed };
}

/** A session past its TTL counts as suspended although no sweep ran. */
export function touchSession(store: Store, id: string, { ttlMs, maxMs }: SessionLifetime = {}): SessionChange {
  const before = sessionLifecycle.asSwept(sessionOf(store, id), store.time(), ttlMs);
  const after = sessionLifecycle.touched(before, store.time(), maxMs);
  const changed = after !== before;
  return { session: changed ? store.sessions.put(after) : before, previousState: before.state, changed };
}
