import { type Session, type SessionChange, SessionNotFoundError } from 'nestjs-agent-sessions';
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
