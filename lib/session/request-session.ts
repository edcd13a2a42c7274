import { AsyncLocalStorage } from 'node:async_hooks';
import { identityOf, type Session, type SessionIdentity } from '../ledger/session.js';

/** The session of the request or message that the current code handles. */
interface RequestSession {
  /** `null` when the handler has ended. Connections and timers that it leaves behind keep this object alive. */
  session: Pick<Session, 'id' | 'createdAt' | 'userId'> | null;
  /** The `SessionStore` of its application: the same id may be another session in another one. */
  readonly store: object;
}

const current = new AsyncLocalStorage<RequestSession>();

/**
 * Runs a handler for the session that its guard has read. Its writes to another session that gets the same id are rejected
 * (FIX-90).
 * @param store the `SessionStore` of the application
 * @param work receives a function to call when the handler has ended
 */
export function runForSession<T>(store: object, session: Session, work: (end: () => void) => T): T {
  const request: RequestSession = { session: identityOf(session), store };
  return current.run(request, work, () => (request.session = null));
}

/** Does the same for the rest of the current asynchronous code. @returns the function to call when the handler has ended */
export function enterSession(store: object, session: Session): () => void {
  const request: RequestSession = { session: identityOf(session), store };
  current.enterWith(request);
  return () => (request.session = null);
}

/**
 * Returns a function that returns the session of the request that the current code handles, if it has the given id.
 * @param store the `SessionStore` of the application that calls the function
 */
export function requestSession(store: object): (sessionId: string) => SessionIdentity | null {
  return (sessionId) => {
    const session = requestFor(store, sessionId)?.session;
    return session ? { createdAt: session.createdAt, userId: session.userId } : null;
  };
}

/** Replaces the session of the request by one that the request has created or opened with the same id. */
export function replaceRequestSession(store: object, session: Session): void {
  const request = requestFor(store, session.id);
  if (request) request.session = identityOf(session);
}

function requestFor(store: object, sessionId: string): RequestSession | undefined {
  const request = current.getStore();
  return request?.store === store && request.session?.id === sessionId ? request : undefined;
}
