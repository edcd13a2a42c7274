import { hasMethods } from '../common/has-methods.js';
import { type JsonObject } from '../common/json.js';
import {
  type NewSession,
  type Session,
  type SessionChange,
  type SessionLifetime,
  type SurfaceChange,
  type SurfaceRules,
} from './session.js';
import { type SessionQuery } from './session-query.js';

/**
 * What a store of sessions must offer at least (SES-15). An object with just these five works, but the service then
 * reads, changes and writes in separate calls, so concurrent changes of one session can be lost.
 */
export interface SessionStoreAdapter {
  /** @throws SessionConflictError when the id is taken */
  insert(session: Session): Promise<void>;
  /** @returns `null` for one that is not there; an expired one is */
  fetchById(sessionId: string): Promise<Session | null>;
  /** Ordered by `lastActivityAt`, then `createdAt`, both newest first, then by `id`. */
  fetchMany(query: SessionQuery): Promise<Session[]>;
  /** @throws SessionNotFoundError */
  update(sessionId: string, patch: Partial<Session>): Promise<Session>;
  /** Removes the session and everything keyed by it, also when the session itself is not there. */
  delete(sessionId: string): Promise<unknown>;
}

/**
 * The atomic operations that our own stores add: each is one round trip, stamped by the store's clock, and loses no
 * concurrent change. Those that take a session id throw SessionNotFoundError when it is missing, except `delete` and `erase`.
 */
export interface AtomicSessionStoreAdapter extends SessionStoreAdapter {
  /** @throws SessionConflictError when the id is taken, or was erased; SurfaceConflictError */
  create(draft: NewSession, rules: SurfaceRules): Promise<CreatedSession>;
  /**
   * As create, unless a live session of the same user, workspace and surface was created within `recentMs`: then that
   * one. So concurrent calls give one session (SES-16), and a call sent again adopts what it made. Without a surface,
   * sessions without one count.
   */
  createOrAdopt(draft: NewSession, rules: SurfaceRules, recentMs: number): Promise<CreatedSession>;
  /**
   * Sent again, it is another touch. An active session that was idle for longer than `ttlMs` counts as suspended: so says
   * `previousState`, and its state changes now. @throws SessionStateError when it is expired, or older than `maxMs`
   */
  touch(sessionId: string, lifetime?: Pick<SessionLifetime, 'ttlMs' | 'maxMs'>): Promise<SessionChange>;
  /** @throws SessionStateError when it is expired or older than its lifetime; SurfaceLimitError; SurfaceConflictError */
  attachSurface(sessionId: string, surfaceId: string, rules: SurfaceRules): Promise<SurfaceChange>;
  /** One that is not attached is no error; the session is then unchanged. @throws SessionNotFoundError */
  detachSurface(sessionId: string, surfaceId: string): Promise<SessionChange>;
  /** Its queued and waiting turns are cancelled in the same commit. */
  expire(sessionId: string): Promise<SessionChange>;
  /** As expire, and its running turn is asked to stop as `TurnLedger.cancel` asks it: the first mark stays. */
  revoke(sessionId: string): Promise<SessionChange>;
  /** Shallow merge, `null` removes a key. @throws TooLargeError when the result is over `maxBytes` */
  mergeMetadata(sessionId: string, patch: JsonObject, maxBytes: number): Promise<SessionChange>;
  /** Suspends at most `limit` active sessions that were idle strictly longer than `idleMs`, longest idle first. */
  suspendStale(idleMs: number, limit: number): Promise<Session[]>;
  /**
   * Expires at most `limit` sessions that were suspended or never used and idle strictly longer than `idleMs`, or that are
   * older than `maxMs` in any state; not while they have open turns (SES-10, SES-19).
   */
  expireStale(lifetime: Pick<SessionLifetime, 'idleMs' | 'maxMs'>, limit: number): Promise<SessionChange[]>;
  /** Deletes at most `limit` sessions that expired more than `olderThanMs` ago, and all they have. @returns their ids */
  purgeExpired(olderThanMs: number, limit: number): Promise<string[]>;
  /** How many sessions match; `limit` and `cursor` do not matter. */
  count(query: SessionQuery): Promise<number>;
  /** @returns whether there was a session to remove */
  delete(sessionId: string): Promise<boolean>;
  /**
   * As delete, and leaves a tombstone: the id is never accepted again, and late writes are refused.
   * @returns whether there was a session to remove
   */
  erase(sessionId: string): Promise<boolean>;
}

/** A new session, or the one that was adopted. */
export interface CreatedSession {
  readonly session: Session;
  readonly created: boolean;
  /** The user's other sessions that lost the surface to it, as they are now. */
  readonly movedFrom: readonly Session[];
}

const ATOMIC_METHODS = [
  'create',
  'createOrAdopt',
  'touch',
  'attachSurface',
  'detachSurface',
  'expire',
  'revoke',
  'mergeMetadata',
  'suspendStale',
  'expireStale',
  'purgeExpired',
  'count',
  'erase',
] as const satisfies readonly (keyof AtomicSessionStoreAdapter)[];

export function isAtomic(adapter: SessionStoreAdapter): adapter is AtomicSessionStoreAdapter {
  return hasMethods(adapter, ATOMIC_METHODS);
}
