import { Logger } from '@nestjs/common';
import { checkInput } from '../common/check-input.js';
import { assertId, assertName, type IdGenerator, mintId } from '../common/ids.js';
import { type JsonCheck } from '../common/json-check.js';
import { stringifyWithin, toJsonFields } from '../common/json.js';
import { inGroups } from '../common/batches.js';
import { InvalidInputError, SessionsConfigurationError } from '../common/sessions.error.js';
import { assertNotSet } from '../common/unset-keys.js';
import { isChildSession } from './is-child-session.js';
import { NonAtomicSessionStore } from './non-atomic-session-store.js';
import { decodeCursor, encodeCursor } from '../ledger/session.cursor.js';
import {
  LIVE_STATES,
  type NewSession,
  type Session,
  type SessionChange,
  type SessionIdentity,
  type SessionLifetime,
  type SessionState,
  type SurfaceRules,
} from '../ledger/session.js';
import { SessionConflictError, SessionNotFoundError, SessionStateError } from '../ledger/session.errors.js';
import { asSwept, isAbandoned, isOverdue } from '../ledger/session.lifecycle.js';
import { replaceRequestSession, requestSession } from './request-session.js';
import { type SessionStoreConfig } from './session-store.config.js';
import { emitActivity, SessionEvents } from './session-events.js';
import { SessionQuery } from '../ledger/session-query.js';
import {
  CreateSessionInput,
  MetadataOptions,
  type NewSessionInput,
  RevokeOptions,
  SessionChangeOptions,
  SweepLimit,
} from './session.inputs.js';
import {
  type AtomicSessionStoreAdapter,
  type CreatedSession,
  isAtomic,
  type SessionStoreAdapter,
} from '../ledger/session.store.js';
import { sessionMessages } from './session.messages.js';

/** The settings of a {@link SessionStore}. */
export type SessionStoreSettings = Omit<SessionStoreConfig, 'adapter'>;

/** A page of sessions returned by `SessionStore.page`. */
export interface SessionPage {
  readonly sessions: readonly Session[];
  /** The `cursor` of the next page. Absent on the last page. */
  readonly nextCursor?: string;
}

const SWEEP_BATCH = 500;
/** The number of sessions per batch of deletions: each session may have thousands of rows. */
const PURGE_BATCH = 20;
const REVOKE_BATCH = 500;
const REVOKED_AT_ONCE = 16;
/** Milliseconds within which `createOrAdopt` treats messages as simultaneous. */
const ADOPT_MS = 10_000;
const DEFAULT_LIMIT = 50;
/** A session may be deleted between the two calls of `getOrCreate`. */
const MAX_CREATIONS = 3;

/**
 * Stores sessions: their user, times, surfaces and lifecycle state.
 *
 * Injectable in modules that import `SessionsModule`, in any form, and everywhere with `isGlobal: true`; without Nest, use
 * `createSessionStore`. Every method validates its input before it calls the store
 * (InvalidInputError), and rejects with SessionNotFoundError for a missing id unless documented otherwise. Methods can be called
 * detached (`const { touch } = store`).
 */
export class SessionStore {
  /** Emits the changes that this process makes to sessions. */
  readonly events: SessionEvents;
  private readonly adapter: AtomicSessionStoreAdapter;
  private readonly ttlMs: number;
  private readonly lifetime: SessionLifetime;
  private readonly surfaceRules: SurfaceRules;
  private readonly maxMetadataBytes: number;
  private readonly generateId: IdGenerator;

  /** @param known returns the session that the current code works for, if it has the given id (FIX-90) */
  constructor(
    adapter: SessionStoreAdapter,
    settings: SessionStoreSettings = {},
    events = new SessionEvents(),
    private readonly known: (sessionId: string) => Pick<Session, 'createdAt' | 'userId'> | null = () => null,
  ) {
    // Nest creates the class without arguments if a module lists it in `providers`.
    if (adapter === undefined) throw new SessionsConfigurationError(sessionMessages.noAdapter());
    this.events = events;
    this.adapter = isAtomic(adapter) ? adapter : this.overNonAtomic(adapter);
    const { defaultTtlMs = 3_600_000, expireAfterMs, maxLifetimeMs } = settings;
    this.ttlMs = wholeMs(defaultTtlMs, 'defaultTtlMs');
    this.lifetime = {
      ttlMs: this.ttlMs,
      ...(expireAfterMs === undefined ? {} : { idleMs: wholeMs(expireAfterMs, 'expireAfterMs') }),
      ...(maxLifetimeMs === undefined ? {} : { maxMs: wholeMs(maxLifetimeMs, 'maxLifetimeMs') }),
    };
    this.surfaceRules = {
      policy: settings.surfacePolicy ?? 'move',
      maxSurfaces: settings.maxSurfacesPerSession ?? 16,
      onLimit: settings.onSurfaceLimit ?? 'detach',
      lifetime: this.lifetime,
    };
    this.maxMetadataBytes = settings.maxMetadataBytes ?? 65_536;
    this.generateId = settings.generateId ?? mintId;
    bindMethods(this);
  }

  /**
   * Creates a session in state `created` (SES-02). Its surface is detached from the user's other session, see `surfacePolicy`.
   * @throws SessionConflictError if the id is in use; the stored session is unchanged
   * @throws SurfaceConflictError with the policy `reject`
   * @throws StateSerializationError if the metadata cannot be stored as JSON; TooLargeError if it is too large
   */
  async create<Metadata extends Record<string, unknown>>(input: NewSessionInput<Metadata>): Promise<Session> {
    return this.created(await this.adapter.create(this.toDraft(input), this.surfaceRules));
  }

  /**
   * Creates a session, or returns a live session of the same user, workspace and surface that was created within the last ten
   * seconds. Simultaneous messages therefore get one session (SES-16). Never returns the session of an agent that was used as a tool.
   */
  async createOrAdopt<Metadata extends Record<string, unknown>>(input: NewSessionInput<Metadata>): Promise<Session> {
    // A session past its lifetime cannot be used.
    const { maxMs = ADOPT_MS, idleMs = ADOPT_MS } = this.lifetime;
    const recentMs = Math.min(ADOPT_MS, maxMs, idleMs);
    const draft = this.toDraft(input);
    const result = await this.adapter.createOrAdopt(draft, this.surfaceRules, recentMs);
    // A store adopts by user, workspace and surface, and does not check metadata.
    const isChild = !result.created && isChildSession(result.session);
    return this.created(isChild ? await this.adapter.create(draft, this.surfaceRules) : result);
  }

  /**
   * Returns the session with this id, or creates it (FIX-49). If several calls run concurrently, in any number of processes, one
   * creates the session and all return it. The surface and metadata apply to a new session only; an existing one is unchanged.
   * @throws SessionNotFoundError if the id belongs to another user or workspace
   * @throws SessionStateError if the session is expired or past its lifetime; SessionConflictError if the id was erased
   * @throws as `create`
   */
  async getOrCreate<Metadata extends Record<string, unknown>>(
    input: NewSessionInput<Metadata> & { readonly id: string },
  ): Promise<Session> {
    const draft = this.toDraft(input);
    assertId(input.id, 'session.id');
    for (let attempt = 1; ; attempt += 1) {
      const known = await this.adapter.fetchById(draft.id);
      if (known) return this.opened(this.assertUsable(known, draft));
      try {
        return this.created(await this.adapter.create(draft, this.surfaceRules));
      } catch (error) {
        // Another call created it concurrently, unless the id was erased.
        if (!SessionConflictError.isInstance(error) || attempt === MAX_CREATIONS) throw error;
      }
    }
  }

  /** Returns the session in any state, or `null` (SES-03). */
  async get(sessionId: string): Promise<Session | null> {
    assertId(sessionId, 'sessionId');
    return this.adapter.fetchById(sessionId);
  }

  /**
   * Returns matching sessions, most recently active first, at most `limit`, default 50 (SES-04). Includes every workspace unless the
   * query names one (NST-24).
   */
  async find(query: SessionQuery = {}): Promise<Session[]> {
    const checked = checkQuery(query);
    return checked.limit === 0 ? [] : this.adapter.fetchMany(checked);
  }

  /** Returns sessions like `find`, including every workspace, with the cursor of the next page. */
  async page(query: SessionQuery = {}): Promise<SessionPage> {
    const checked = checkQuery(query);
    const { limit = DEFAULT_LIMIT } = checked;
    if (limit === 0) return { sessions: [] };
    // Fetch one more to know whether another page follows.
    const found = await this.adapter.fetchMany({ ...checked, limit: limit + 1 });
    const sessions = found.slice(0, limit);
    return found.length > limit ? { sessions, nextCursor: encodeCursor(sessions[limit - 1]) } : { sessions };
  }

  /** Returns whether the session can no longer be used: it is expired, or past its lifetime by this process's clock. */
  isOver(session: Session): boolean {
    return session.state === 'expired' || isOverdue(session, new Date().toISOString(), this.lifetime.maxMs);
  }

  /**
   * Returns the state in which the sweep would leave the session, by this process's clock: an active session past its TTL is
   * suspended, and a session past its lifetime is expired (FIX-44).
   */
  currentState(session: Session): SessionState {
    return this.isOver(session) ? 'expired' : asSwept(session, new Date().toISOString(), this.ttlMs).state;
  }

  /**
   * Returns whether the session no longer holds its surfaces: it is over, or idle long enough to be expired by the sweep, by this
   * process's clock.
   */
  isAbandoned(session: Session): boolean {
    return isAbandoned(session, new Date().toISOString(), this.lifetime);
  }

  /** Counts matching sessions in every workspace, unless the query names one. Ignores the limit. */
  async count(query: SessionQuery = {}): Promise<number> {
    return this.adapter.count(checkQuery(query));
  }

  /**
   * Records activity: a created or suspended session becomes active (SES-05). An active session that was idle for longer
   * than its TTL counts as suspended, even if no sweep ran.
   * @throws SessionStateError if it is expired; SessionNotFoundError also if the id now belongs to another session than
   * `session` (FIX-90)
   */
  async touch(sessionId: string, options: SessionChangeOptions = {}): Promise<Session> {
    return (await this.touchWithOutcome(sessionId, options)).session;
  }

  /** Records activity like `touch`, and returns the previous state, which identifies a cold start, a running or a resumed session. */
  async touchWithOutcome(
    sessionId: string,
    options: SessionChangeOptions = {},
  ): Promise<{
    readonly session: Session;
    readonly previousState: SessionState;
    /** False if the operation had no effect and wrote nothing. */
    readonly changed: boolean;
  }> {
    assertId(sessionId, 'sessionId');
    const change = await this.adapter.touch(sessionId, this.lifetime, this.requiredBy(sessionId, options));
    emitActivity(this.events, change);
    return change;
  }

  /**
   * Attaches a surface; a repeated call has no effect (SES-06). It is detached from the user's other session, see `surfacePolicy`.
   * At `maxSurfacesPerSession` the oldest attachment is detached, see `onSurfaceLimit`.
   * @throws SessionStateError if the session is expired; SurfaceLimitError with the limit policy `reject`
   * @throws SurfaceConflictError with the policy `reject`; SessionNotFoundError also if the id now belongs to another
   * session than `session` (FIX-90)
   */
  async attachSurface(sessionId: string, surfaceId: string, options: SessionChangeOptions = {}): Promise<Session> {
    assertId(sessionId, 'sessionId');
    assertName(surfaceId, 'surfaceId');
    const required = this.requiredBy(sessionId, options);
    const change = await this.adapter.attachSurface(sessionId, surfaceId, this.surfaceRules, required);
    const { session, changed, movedFrom, detached } = change;
    this.emitMoved(movedFrom, surfaceId);
    for (const lost of detached) {
      this.events.emit({ type: 'surface-detached', session, surfaceId: lost, cause: 'limit' });
    }
    if (changed) this.events.emit({ type: 'surface-attached', session, surfaceId });
    return session;
  }

  /** Detaches a surface, in any state; a repeated call has no effect (SES-06). */
  async detachSurface(sessionId: string, surfaceId: string): Promise<Session> {
    assertId(sessionId, 'sessionId');
    assertName(surfaceId, 'surfaceId');
    const { session, changed } = await this.adapter.detachSurface(sessionId, surfaceId);
    if (changed) this.events.emit({ type: 'surface-detached', session, surfaceId, cause: 'requested' });
    return session;
  }

  /** Ends the session permanently, in any state, and cancels its queued and waiting turns. A repeated call is ignored (SES-08). */
  async expire(sessionId: string): Promise<Session> {
    assertId(sessionId, 'sessionId');
    const { session, previousState, changed } = await this.adapter.expire(sessionId);
    if (changed) this.events.emit({ type: 'expired', session, previousState, cause: 'requested' });
    return session;
  }

  /**
   * Expires the session, asks its running turn to stop and ends its open event streams (NST-18). A repeated call asks the turn again.
   * @throws SessionNotFoundError also if the id now belongs to another session than `session` (FIX-90)
   */
  async revoke(sessionId: string, options: SessionChangeOptions = {}): Promise<Session> {
    assertId(sessionId, 'sessionId');
    return (await this.revokeOne(sessionId, this.requiredBy(sessionId, options))).session;
  }

  /**
   * Revokes all live sessions of the user, in every workspace unless one is named (NST-18). Sessions that are created during the call
   * may remain. A session that is kept also keeps the sessions that its orchestrators created (`<id>/...`).
   * @returns the revoked sessions
   * @throws the first error of revoking a session, after the others were revoked; retry the call
   */
  async revokeAll(userId: string, options: RevokeOptions = {}): Promise<Session[]> {
    assertName(userId, 'userId');
    const { except = [], ...workspace } = checkInput(RevokeOptions, options, 'options');
    const query = { ...workspace, userId, state: [...LIVE_STATES] };
    const kept = [except].flat();
    /** The live sessions that the next page still lists. */
    const passed = new Set(kept);
    const revoked = new Map<string, Session>();
    const failures: unknown[] = [];
    // Start from the first page each time, because touched sessions change their position.
    for (;;) {
      const found = await this.adapter.fetchMany({ ...query, limit: REVOKE_BATCH + passed.size });
      const next = found.filter(({ id }) => !passed.has(id));
      if (next.length === 0) break;
      await inGroups(next, REVOKED_AT_ONCE, async (listed) => {
        const { id } = listed;
        // A foreign store may list a session that was just revoked.
        const isPassed = revoked.has(id) || kept.some((parent) => id.startsWith(`${parent}/`));
        if (isPassed) return void passed.add(id);
        try {
          const { session, changed } = await this.revokeOne(id, listed);
          if (changed) return void revoked.set(id, session);
        } catch (error) {
          // Deleted concurrently. Its id may belong to another session now.
          if (!SessionNotFoundError.isInstance(error)) failures.push(error);
        }
        passed.add(id);
      });
    }
    if (failures.length > 0) throw failures[0];
    return [...revoked.values()];
  }

  /** Deletes the session with its turns, checkpoints, messages and state. Ignored if it does not exist (SES-11). */
  async delete(sessionId: string): Promise<void> {
    assertId(sessionId, 'sessionId');
    const deleted = await this.adapter.delete(sessionId);
    if (deleted) this.events.emit({ type: 'deleted', sessionId, cause: 'requested' });
  }

  /**
   * Deletes the session permanently: its id is never accepted again, and late writes are rejected (NST-25). With a custom store
   * without `erase`, this is the same as `delete`. If the id now belongs to another session than `session`, that session is kept
   * (FIX-90).
   * @returns whether the session existed
   */
  async erase(sessionId: string, options: SessionChangeOptions = {}): Promise<boolean> {
    assertId(sessionId, 'sessionId');
    const erased = await this.adapter.erase(sessionId, this.requiredBy(sessionId, options));
    if (erased) this.events.emit({ type: 'deleted', sessionId, cause: 'erased' });
    return erased;
  }

  /**
   * Suspends every active session that was idle strictly longer than `ttlMs`, and returns them (SES-09).
   * Works in batches; the cost depends on the number of stale sessions.
   * @param ttlMs milliseconds; default: the store's TTL
   */
  async sweepStale(ttlMs: number = this.ttlMs, options: SweepLimit = {}): Promise<Session[]> {
    const idleMs = wholeMs(ttlMs, 'ttlMs');
    return inBatches(SWEEP_BATCH, options, async (limit) => {
      const swept = await this.adapter.suspendStale(idleMs, limit);
      for (const session of swept) {
        this.events.emit({ type: 'suspended', session, previousState: 'active', cause: 'idle' });
      }
      return swept;
    });
  }

  /**
   * Expires sessions that were suspended or never used and idle for longer than `idleMs`, and sessions that are past
   * their lifetime. Sessions with open turns are skipped (SES-10, SES-19).
   * @param idleMs milliseconds; default: the store's `expireAfterMs`; without both, only lifetimes count
   */
  async sweepExpired(idleMs = this.lifetime.idleMs, options: SweepLimit = {}): Promise<Session[]> {
    const { maxMs } = this.lifetime;
    const lifetime: SessionLifetime = {
      ...(idleMs === undefined ? {} : { idleMs: wholeMs(idleMs, 'idleMs') }),
      ...(maxMs === undefined ? {} : { maxMs }),
    };
    if (Object.keys(lifetime).length === 0) return [];
    return inBatches(SWEEP_BATCH, options, async (limit) => {
      const swept = await this.adapter.expireStale(lifetime, limit);
      for (const { session, previousState } of swept) {
        // An active session is never expired for being idle.
        const idle = previousState !== 'active' && wasIdleFor(session, idleMs);
        this.events.emit({ type: 'expired', session, previousState, cause: idle ? 'idle' : 'lifetime' });
      }
      return swept.map(({ session }) => session);
    });
  }

  /**
   * Deletes sessions that expired longer ago than `olderThanMs`, with all their data (SES-11).
   * @returns the ids of the deleted sessions
   */
  async purgeExpired(olderThanMs: number, options: SweepLimit = {}): Promise<string[]> {
    const ageMs = wholeMs(olderThanMs, 'olderThanMs');
    return inBatches(PURGE_BATCH, options, async (limit) => {
      const purged = await this.adapter.purgeExpired(ageMs, limit);
      for (const sessionId of purged) this.events.emit({ type: 'deleted', sessionId, cause: 'retention' });
      return purged;
    });
  }

  /**
   * Merges top-level keys, in any state (SES-12), and removes the keys of `unset` (FIX-47). `null` removes its key too: a
   * patch never stores a top-level `null`.
   * @throws StateSerializationError naming the path; TooLargeError if the result exceeds the limit;
   * SessionNotFoundError also if the id now belongs to another session than `session` (FIX-90)
   */
  async updateMetadata<Metadata extends Record<string, unknown>>(
    sessionId: string,
    metadata: Metadata & JsonCheck<Metadata>,
    options: MetadataOptions = {},
  ): Promise<Session> {
    assertId(sessionId, 'sessionId');
    const given = toJsonFields(metadata, 'metadata');
    const { unset = [], session: read } = checkInput(MetadataOptions, options, 'options');
    assertNotSet(unset, given, 'options.unset');
    const removed = Object.fromEntries(unset.map((key) => [key, null]));
    const patch = { ...given, ...removed };
    const required = read ?? this.own(sessionId);
    const { session } = await this.adapter.mergeMetadata(sessionId, patch, this.maxMetadataBytes, required);
    return session;
  }

  /** Returns the session that must have the id; `undefined`: any session. */
  private requiredBy(sessionId: string, options: SessionChangeOptions): SessionIdentity | undefined {
    const { session } = checkInput(SessionChangeOptions, options, 'options');
    return session ?? this.own(sessionId);
  }

  /** Returns the session that the current code works for, if it has this id. */
  private own(sessionId: string): SessionIdentity | undefined {
    return this.known(sessionId) ?? requestSession(this)(sessionId) ?? undefined;
  }

  private async revokeOne(sessionId: string, required: SessionIdentity | undefined): Promise<SessionChange> {
    const change = await this.adapter.revoke(sessionId, required);
    const { session, previousState, changed } = change;
    if (changed) this.events.emit({ type: 'expired', session, previousState, cause: 'revoked' });
    return change;
  }

  private assertUsable(session: Session, { id, userId, workspaceId }: NewSession): Session {
    if (session.userId !== userId || (session.workspaceId ?? undefined) !== workspaceId) {
      throw new SessionNotFoundError(id);
    }
    if (this.isOver(session)) throw new SessionStateError(id, 'expired', 'getOrCreate');
    return session;
  }

  private toDraft(input: CreateSessionInput): NewSession {
    const checked = checkInput(CreateSessionInput, input, 'session');
    const { id = this.generateId(), userId, workspaceId, initialSurfaceId, metadata: given = {} } = checked;
    assertId(id, 'session.id');
    const metadata = toJsonFields(given, 'metadata');
    stringifyWithin(metadata, this.maxMetadataBytes, `The metadata of session ${id}`);
    return {
      id,
      userId,
      ...(workspaceId === undefined ? {} : { workspaceId }),
      attachedSurfaces: initialSurfaceId === undefined ? [] : [initialSurfaceId],
      metadata,
    };
  }

  private created({ session, created, movedFrom }: CreatedSession): Session {
    for (const surfaceId of session.attachedSurfaces) this.emitMoved(movedFrom, surfaceId);
    if (created) this.events.emit({ type: 'created', session });
    return this.opened(session);
  }

  private opened(session: Session): Session {
    replaceRequestSession(this, session);
    return session;
  }

  private emitMoved(movedFrom: readonly Session[], surfaceId: string): void {
    for (const session of movedFrom) this.events.emit({ type: 'surface-detached', session, surfaceId, cause: 'moved' });
  }

  private overNonAtomic(adapter: SessionStoreAdapter): AtomicSessionStoreAdapter {
    new Logger(SessionStore.name).warn(sessionMessages.nonAtomicStore());
    return new NonAtomicSessionStore(adapter);
  }
}

/** Repeats a bounded operation until it finds less than its bound, or `maxSessions` in total, or the signal is aborted. */
async function inBatches<T>(size: number, options: SweepLimit, sweep: (limit: number) => Promise<T[]>): Promise<T[]> {
  const { maxSessions: max = Infinity, signal } = checkInput(SweepLimit, options, 'options');
  const swept: T[] = [];
  while (swept.length < max && !signal?.aborted) {
    const limit = Math.min(size, max - swept.length);
    const batch = await sweep(limit);
    swept.push(...batch);
    if (batch.length < limit) break;
  }
  return swept;
}

/** Returns whether a session that has just expired was idle for longer. */
function wasIdleFor({ stateChangedAt = '', lastActivityAt }: Session, idleMs = Infinity): boolean {
  return Date.parse(stateChangedAt) - Date.parse(lastActivityAt) > idleMs;
}

function checkQuery(query: SessionQuery): SessionQuery {
  const checked = checkInput(SessionQuery, query, 'query');
  if (checked.cursor !== undefined) decodeCursor(checked.cursor);
  // Return a plain object, with times in a form that sorts as a string.
  const { activeAfter, activeBefore, ...rest } = checked;
  return {
    ...rest,
    ...(activeAfter === undefined ? {} : { activeAfter: new Date(activeAfter).toISOString() }),
    ...(activeBefore === undefined ? {} : { activeBefore: new Date(activeBefore).toISOString() }),
  };
}

/** Rounds down to whole milliseconds, as stores count. Comparisons with whole durations keep their result. */
function wholeMs(ms: unknown, path: string): number {
  if (typeof ms !== 'number' || !Number.isFinite(ms) || ms < 0) {
    throw new InvalidInputError(path, 'must be a number of milliseconds, 0 or more.');
  }
  return Math.min(Math.floor(ms), Number.MAX_SAFE_INTEGER);
}

function bindMethods(target: object): void {
  const methods = target as Record<string, unknown>;
  // Also the methods of subclasses.
  let type = Object.getPrototypeOf(target) as object;
  for (; type !== Object.prototype; type = Object.getPrototypeOf(type) as object) {
    for (const name of Object.getOwnPropertyNames(type)) {
      const method = Object.getOwnPropertyDescriptor(type, name)?.value as unknown;
      if (name === 'constructor' || typeof method !== 'function' || Object.hasOwn(methods, name)) continue;
      methods[name] = method.bind(target) as unknown;
    }
  }
}
