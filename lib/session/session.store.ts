import { type JsonObject } from '../common/json.js';
import { type NewSession, type Session, type SessionTouch } from './session.js';
import { type SessionQuery } from './session.inputs.js';

/**
 * What a store of sessions must offer at least (SES-15). An object with just these five works, but the service then
 * reads, changes and writes in separate calls, so concurrent changes of one session can be lost.
 */
export interface SessionStoreAdapter {
  /** @throws SessionConflictError when the id is taken */
  insert(session: Session): Promise<void>;
  fetchById(sessionId: string): Promise<Session | null>;
  /** Ordered by `lastActivityAt`, then `createdAt`, both newest first, then by `id`. */
  fetchMany(query: SessionQuery): Promise<Session[]>;
  /** @throws SessionNotFoundError */
  update(sessionId: string, patch: Partial<Session>): Promise<Session>;
  /** Removes the session and everything keyed by it. Without effect when it is not there. */
  delete(sessionId: string): Promise<void>;
}

/**
 * The atomic operations that our own stores add: each is one round trip, stamped by the store's clock, and loses no
 * concurrent change. All but `create`, `suspendStale`, `count` and `erase` throw SessionNotFoundError for a missing id.
 */
export interface AtomicSessionStoreAdapter extends SessionStoreAdapter {
  /** @throws SessionConflictError when the id is taken, or was erased */
  create(draft: NewSession): Promise<Session>;
  /** @throws SessionStateError when it is expired */
  touch(sessionId: string): Promise<SessionTouch>;
  /** @throws SessionStateError when it is expired; SurfaceLimitError beyond `maxSurfaces` */
  attachSurface(sessionId: string, surfaceId: string, maxSurfaces: number): Promise<Session>;
  detachSurface(sessionId: string, surfaceId: string): Promise<Session>;
  /** Its queued and waiting turns are cancelled in the same commit. */
  expire(sessionId: string): Promise<Session>;
  /** Shallow merge, `null` removes a key. @throws TooLargeError when the result is over `maxBytes` */
  mergeMetadata(sessionId: string, patch: JsonObject, maxBytes: number): Promise<Session>;
  /** Suspends at most `limit` active sessions that were idle strictly longer than `idleMs`, longest idle first. */
  suspendStale(idleMs: number, limit: number): Promise<Session[]>;
  /** How many sessions match; `limit` and `cursor` do not matter. */
  count(query: SessionQuery): Promise<number>;
  /** As delete, and leaves a tombstone: the id is never accepted again, and late writes are refused. */
  erase(sessionId: string): Promise<void>;
}

export function isAtomic(adapter: SessionStoreAdapter): adapter is AtomicSessionStoreAdapter {
  return typeof (adapter as Partial<AtomicSessionStoreAdapter>).suspendStale === 'function';
}
