import { type JsonObject } from '../common/json.js';
import { hasMethod, missingMethods, type RequiredMethods } from '../common/required-methods.js';
import {
  type NewSession,
  type Session,
  type SessionChange,
  type SessionIdentity,
  type SessionLifetime,
  type SurfaceChange,
  type SurfaceRules,
} from './session.js';
import { type SessionQuery } from './session-query.js';

/**
 * The minimal interface of a session store (SES-15). These five methods are sufficient, but the service then reads, changes and
 * writes in separate calls, so concurrent changes to a session can be lost.
 */
export interface SessionStoreAdapter {
  /** Inserts a session. @throws SessionConflictError if the id is in use */
  insert(session: Session): Promise<void>;
  /** Returns the session, including an expired one, or `null` if it does not exist. */
  fetchById(sessionId: string): Promise<Session | null>;
  /** Returns sessions ordered by `lastActivityAt`, then `createdAt`, both newest first, then by `id`. */
  fetchMany(query: SessionQuery): Promise<Session[]>;
  /** @throws SessionNotFoundError */
  update(sessionId: string, patch: Partial<Session>): Promise<Session>;
  /** Deletes the session and all data keyed by it, even if the session itself does not exist. */
  // `any` is assignable in both directions: drivers resolve with a count, and older adapters with nothing (FIX-89).
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  delete(sessionId: string): Promise<any>;
}

/**
 * The atomic operations of the stores of this package. Each is one transaction, uses the store's clock, and loses no concurrent
 * change. Methods with a session id throw SessionNotFoundError if it does not exist, except `delete` and `erase`.
 *
 * `required` is the session that must have the id, checked in the same commit (FIX-90). If another session has it, the method writes
 * nothing and throws SessionNotFoundError; `erase` returns false. Default: any session.
 */
export interface AtomicSessionStoreAdapter extends SessionStoreAdapter {
  /** Creates a session. @throws SessionConflictError if the id is in use or was erased; SurfaceConflictError */
  create(draft: NewSession, rules: SurfaceRules): Promise<CreatedSession>;
  /**
   * Creates a session, or adopts a live one of the same user, workspace and surface that was created within `recentMs`. Concurrent
   * calls therefore return one session (SES-16), and a repeated call adopts its own. Without a surface, it adopts a session without
   * one.
   */
  createOrAdopt(draft: NewSession, rules: SurfaceRules, recentMs: number): Promise<CreatedSession>;
  /**
   * Records activity. A repeated call is another touch. An active session that was idle for longer than `ttlMs` counts as suspended:
   * `previousState` is `suspended`, and its state changes now. @throws SessionStateError if it is expired or older than `maxMs`
   */
  touch(
    sessionId: string,
    lifetime?: Pick<SessionLifetime, 'ttlMs' | 'maxMs'>,
    required?: SessionIdentity,
  ): Promise<SessionChange>;
  /** Attaches a surface. @throws SessionStateError if it is expired or past its lifetime; SurfaceLimitError; SurfaceConflictError */
  attachSurface(
    sessionId: string,
    surfaceId: string,
    rules: SurfaceRules,
    required?: SessionIdentity,
  ): Promise<SurfaceChange>;
  /** Detaches a surface. Ignored if it is not attached. @throws SessionNotFoundError */
  detachSurface(sessionId: string, surfaceId: string): Promise<SessionChange>;
  /** Expires the session and cancels its queued and waiting turns in the same commit. */
  expire(sessionId: string): Promise<SessionChange>;
  /** Expires the session and asks its running turn to stop, like `TurnLedger.cancel`: the first mark is kept. */
  revoke(sessionId: string, required?: SessionIdentity): Promise<SessionChange>;
  /** Merges metadata shallowly; `null` removes a key. @throws TooLargeError if the result exceeds `maxBytes` */
  mergeMetadata(
    sessionId: string,
    patch: JsonObject,
    maxBytes: number,
    required?: SessionIdentity,
  ): Promise<SessionChange>;
  /** Suspends at most `limit` active sessions that were idle strictly longer than `idleMs`, longest idle first. */
  suspendStale(idleMs: number, limit: number): Promise<Session[]>;
  /**
   * Expires at most `limit` sessions that were suspended or never used and idle strictly longer than `idleMs`, or that are
   * older than `maxMs` in any state. Sessions with open turns are skipped (SES-10, SES-19).
   */
  expireStale(lifetime: Pick<SessionLifetime, 'idleMs' | 'maxMs'>, limit: number): Promise<SessionChange[]>;
  /** Deletes at most `limit` sessions that expired more than `olderThanMs` ago, with all their data. @returns their ids */
  purgeExpired(olderThanMs: number, limit: number): Promise<string[]>;
  /** Counts matching sessions. Ignores `limit` and `cursor`. */
  count(query: SessionQuery): Promise<number>;
  /** Deletes the session. @returns whether it existed */
  delete(sessionId: string): Promise<boolean>;
  /**
   * Deletes the session and stores a tombstone: its id is never accepted again, and late writes are rejected.
   * @returns whether the session existed
   */
  erase(sessionId: string, required?: SessionIdentity): Promise<boolean>;
}

/** A created or adopted session. */
export interface CreatedSession {
  readonly session: Session;
  readonly created: boolean;
  /** The user's other sessions from which the surface was detached, in their new state. */
  readonly movedFrom: readonly Session[];
}

/** The methods that every session store must have. */
export const SESSION_METHODS: RequiredMethods<SessionStoreAdapter> = {
  insert: true,
  fetchById: true,
  fetchMany: true,
  update: true,
  delete: true,
};

/** The methods that an atomic store must have in addition. */
export const ATOMIC_METHODS: RequiredMethods<Omit<AtomicSessionStoreAdapter, keyof SessionStoreAdapter>> = {
  create: true,
  createOrAdopt: true,
  touch: true,
  attachSurface: true,
  detachSurface: true,
  expire: true,
  revoke: true,
  mergeMetadata: true,
  suspendStale: true,
  expireStale: true,
  purgeExpired: true,
  count: true,
  erase: true,
};

/**
 * The atomic methods with names that other classes rarely have. `create`, `count` and `touch`, for example, are also methods of
 * repositories and caches.
 */
const DISTINCTIVE_METHODS: readonly (keyof typeof ATOMIC_METHODS)[] = [
  'createOrAdopt',
  'attachSurface',
  'detachSurface',
  'mergeMetadata',
  'suspendStale',
  'expireStale',
  'purgeExpired',
];

/**
 * Returns the methods that a session store lacks. A store with a distinctive method of an atomic store must have all atomic methods:
 * used as a store of five methods, it could lose concurrent changes and would not cancel turns.
 */
export function missingOfSessions(store: unknown): string[] {
  const isMeantAtomic = DISTINCTIVE_METHODS.some((name) => hasMethod(store, name));
  return missingMethods(store, isMeantAtomic ? { ...SESSION_METHODS, ...ATOMIC_METHODS } : SESSION_METHODS);
}

export function isAtomic(adapter: SessionStoreAdapter): adapter is AtomicSessionStoreAdapter {
  return missingMethods(adapter, ATOMIC_METHODS).length === 0;
}
