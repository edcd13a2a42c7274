import { type ConversationLog } from '../ledger/conversation.store.js';
import { SessionNotFoundError, SessionStateError } from '../ledger/session.errors.js';
import { type SessionIdentity } from '../ledger/session.js';
import { isSameSession } from '../ledger/session.lifecycle.js';
import { isAtomic } from '../ledger/session.store.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { type StateOwnership, type StateStore } from '../ledger/state.store.js';

/**
 * Returns the session that the current code works for, if it has this id. Writes for another session that gets the id later
 * are rejected (FIX-90). `null`: any session may have the id.
 */
export type KnownSession = (sessionId: string) => SessionIdentity | null;

/**
 * Returns a store that rejects writes for unknown, deleted and expired sessions (FIX-41). The store checks this in the
 * commit of the write. With sessions in an external store, the session is read before the write, so a session that ends
 * in between is not noticed.
 */
export function ownedState(
  { state, sessions }: Pick<SessionsAdapter, 'state' | 'sessions'>,
  known: KnownSession,
): StateStore {
  return {
    get: (address, access) => state.get(address, access),
    set: async (address, value, options = {}) =>
      state.set(address, value, { ...options, ...(await ownership(sessions, address.sessionId, known)) }),
    append: async (address, append) =>
      state.append(address, { ...append, ...(await ownership(sessions, address.sessionId, known)) }),
    delete: (address) => state.delete(address),
    deleteExpired: (limit) => state.deleteExpired(limit),
    evictIdle: (namespace, keep, limit) => state.evictIdle(namespace, keep, limit),
    list: (query) => state.list(query),
    count: (selection) => state.count(selection),
    namespaces: (sessionId) => state.namespaces(sessionId),
    reset: (reset) => state.reset(reset),
  };
}

/** Returns a message log that rejects appends for unknown, deleted and expired sessions. */
export function ownedLog(
  { conversations, sessions }: Pick<SessionsAdapter, 'conversations' | 'sessions'>,
  known: KnownSession,
): ConversationLog {
  return {
    append: async (sessionId, messages) =>
      conversations.append(sessionId, messages, await ownership(sessions, sessionId, known)),
    window: (sessionId, limit) => conversations.window(sessionId, limit),
    page: (sessionId, range) => conversations.page(sessionId, range),
    sessions: (after, limit) => conversations.sessions(after, limit),
  };
}

async function ownership(
  sessions: SessionsAdapter['sessions'],
  sessionId: string,
  known: KnownSession,
): Promise<StateOwnership> {
  const own = known(sessionId);
  if (isAtomic(sessions)) return { requireSession: own ?? true };
  const session = await sessions.fetchById(sessionId);
  if (!session || (own && !isSameSession(session, own))) throw new SessionNotFoundError(sessionId);
  if (session.state === 'expired') throw new SessionStateError(sessionId, 'expired', 'write state');
  return {};
}
