import { Logger } from '@nestjs/common';
import { checkInput } from '../common/check-input.js';
import { assertId, assertName, type IdGenerator, mintId } from '../common/ids.js';
import { stringifyWithin, toJsonObject } from '../common/json.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { PortableSessionStore } from './portable-session-store.js';
import { decodeCursor, encodeCursor } from './session.cursor.js';
import { type NewSession, type Session, type SessionTouch } from './session.js';
import { CreateSessionInput, SessionQuery, SweepStaleOptions } from './session.inputs.js';
import { type AtomicSessionStoreAdapter, isAtomic, type SessionStoreAdapter } from './session.store.js';

export interface SessionStoreSettings {
  /** Idle time in milliseconds after which `sweepStale` suspends a session. Default 3,600,000 (an hour). */
  readonly defaultTtlMs?: number;
  /** Default 16. */
  readonly maxSurfacesPerSession?: number;
  /** Of the merged metadata as JSON. Default 65,536. */
  readonly maxMetadataBytes?: number;
  /** Default: 128 random bits as hexadecimal digits. */
  readonly generateId?: IdGenerator;
}

/** Sessions of a page of `SessionStore.page`. */
export interface SessionPage {
  readonly sessions: readonly Session[];
  /** Give it as `cursor` for the next page; absent on the last one. */
  readonly nextCursor?: string;
}

const SWEEP_BATCH = 500;
const DEFAULT_LIMIT = 50;

/**
 * Sessions: who is talking, since when, through which surfaces, and in which lifecycle state.
 *
 * Injectable, and made without Nest by `createSessionStore`. Every method checks its input before the store is asked
 * (InvalidInputError), rejects with SessionNotFoundError for a missing id unless it says otherwise, and can be called
 * detached (`const { touch } = store`).
 */
export class SessionStore {
  private readonly adapter: AtomicSessionStoreAdapter;
  private readonly ttlMs: number;
  private readonly maxSurfaces: number;
  private readonly maxMetadataBytes: number;
  private readonly generateId: IdGenerator;

  constructor(adapter: SessionStoreAdapter, settings: SessionStoreSettings = {}) {
    this.adapter = isAtomic(adapter) ? adapter : this.portable(adapter);
    this.ttlMs = settings.defaultTtlMs ?? 3_600_000;
    this.maxSurfaces = settings.maxSurfacesPerSession ?? 16;
    this.maxMetadataBytes = settings.maxMetadataBytes ?? 65_536;
    this.generateId = settings.generateId ?? mintId;
    assertTtl(this.ttlMs, 'defaultTtlMs');
    bindMethods(this);
  }

  /**
   * Stores a new session in state `created` (SES-02).
   * @throws SessionConflictError when the id is taken; the stored session stays as it is
   * @throws StateSerializationError for metadata that JSON cannot carry; TooLargeError for too much of it
   */
  async create(input: CreateSessionInput): Promise<Session> {
    const checked = checkInput(CreateSessionInput, input, 'input');
    const { id = this.generateId(), userId, workspaceId, initialSurfaceId, metadata: given = {} } = checked;
    assertId(id, 'input.id');
    const metadata = toJsonObject(given, 'metadata');
    stringifyWithin(metadata, this.maxMetadataBytes, `The metadata of session ${id}`);
    const draft: NewSession = {
      id,
      userId,
      ...(workspaceId === undefined ? {} : { workspaceId }),
      attachedSurfaces: initialSurfaceId === undefined ? [] : [initialSurfaceId],
      metadata,
    };
    return this.adapter.create(draft);
  }

  /** The session in any state, or `null` (SES-03). */
  async get(sessionId: string): Promise<Session | null> {
    assertId(sessionId, 'sessionId');
    return this.adapter.fetchById(sessionId);
  }

  /** The sessions that match, the most recently active first; at most `limit`, default 50 (SES-04). */
  async find(query: SessionQuery = {}): Promise<Session[]> {
    const checked = checkQuery(query);
    return checked.limit === 0 ? [] : this.adapter.fetchMany(checked);
  }

  /** As `find`, with the cursor of the page that follows. */
  async page(query: SessionQuery = {}): Promise<SessionPage> {
    const checked = checkQuery(query);
    const { limit = DEFAULT_LIMIT } = checked;
    if (limit === 0) return { sessions: [] };
    // One more than the page tells whether another page follows.
    const found = await this.adapter.fetchMany({ ...checked, limit: limit + 1 });
    const sessions = found.slice(0, limit);
    return found.length > limit ? { sessions, nextCursor: encodeCursor(sessions[limit - 1]) } : { sessions };
  }

  /** How many sessions match, whatever the limit. */
  async count(query: SessionQuery = {}): Promise<number> {
    return this.adapter.count(checkQuery(query));
  }

  /**
   * Records activity: a created or suspended session becomes active (SES-05).
   * @throws SessionStateError when it is expired
   */
  async touch(sessionId: string): Promise<Session> {
    return (await this.touchWithOutcome(sessionId)).session;
  }

  /** As `touch`, and tells the state before: whether this was a cold start, a running or a resumed session. */
  async touchWithOutcome(sessionId: string): Promise<SessionTouch> {
    assertId(sessionId, 'sessionId');
    return this.adapter.touch(sessionId);
  }

  /**
   * Adds a surface at the end; a repeat changes nothing (SES-06).
   * @throws SessionStateError when the session is expired; SurfaceLimitError when it is full
   */
  async attachSurface(sessionId: string, surfaceId: string): Promise<Session> {
    assertId(sessionId, 'sessionId');
    assertName(surfaceId, 'surfaceId');
    return this.adapter.attachSurface(sessionId, surfaceId, this.maxSurfaces);
  }

  /** Removes a surface, in any state; a repeat changes nothing (SES-06). */
  async detachSurface(sessionId: string, surfaceId: string): Promise<Session> {
    assertId(sessionId, 'sessionId');
    assertName(surfaceId, 'surfaceId');
    return this.adapter.detachSurface(sessionId, surfaceId);
  }

  /** Ends the session for good, from any state; its queued and waiting turns are cancelled. A repeat changes nothing (SES-08). */
  async expire(sessionId: string): Promise<Session> {
    assertId(sessionId, 'sessionId');
    return this.adapter.expire(sessionId);
  }

  /**
   * Suspends every active session that was idle strictly longer than `ttlMs` and returns those (SES-09).
   * Works in batches; the cost follows the number of stale sessions.
   * @param ttlMs milliseconds; default: the store's TTL
   */
  async sweepStale(ttlMs: number = this.ttlMs, options: SweepStaleOptions = {}): Promise<Session[]> {
    assertTtl(ttlMs, 'ttlMs');
    const { maxSessions = Infinity } = checkInput(SweepStaleOptions, options, 'options');
    const swept: Session[] = [];
    while (swept.length < maxSessions) {
      const limit = Math.min(SWEEP_BATCH, maxSessions - swept.length);
      const batch = await this.adapter.suspendStale(ttlMs, limit);
      swept.push(...batch);
      if (batch.length < limit) break;
    }
    return swept;
  }

  /**
   * Merges top-level keys, in any state; `null` removes a key (SES-12).
   * @throws StateSerializationError naming the path; TooLargeError when the result is over the limit
   */
  async updateMetadata(sessionId: string, metadata: Record<string, unknown>): Promise<Session> {
    assertId(sessionId, 'sessionId');
    return this.adapter.mergeMetadata(sessionId, toJsonObject(metadata, 'metadata'), this.maxMetadataBytes);
  }

  private portable(adapter: SessionStoreAdapter): AtomicSessionStoreAdapter {
    new Logger(SessionStore.name).warn(
      'The session adapter has no atomic operations: concurrent changes of one session can be lost. ' +
        'Use one of the adapters of this package, or implement AtomicSessionStoreAdapter.',
    );
    return new PortableSessionStore(adapter);
  }
}

function checkQuery(query: SessionQuery): SessionQuery {
  const checked = checkInput(SessionQuery, query, 'query');
  if (checked.cursor !== undefined) decodeCursor(checked.cursor);
  // A plain object again, with times in the one form that compares as text.
  const { activeAfter, activeBefore, ...rest } = checked;
  return {
    ...rest,
    ...(activeAfter === undefined ? {} : { activeAfter: new Date(activeAfter).toISOString() }),
    ...(activeBefore === undefined ? {} : { activeBefore: new Date(activeBefore).toISOString() }),
  };
}

function assertTtl(ttlMs: unknown, path: string): void {
  if (typeof ttlMs !== 'number' || !Number.isFinite(ttlMs) || ttlMs < 0) {
    throw new InvalidInputError(path, 'must be a number of milliseconds, 0 or more.');
  }
}

function bindMethods(target: object): void {
  const methods = target as Record<string, unknown>;
  for (const name of Object.getOwnPropertyNames(Object.getPrototypeOf(target))) {
    const method = methods[name];
    if (name !== 'constructor' && typeof method === 'function') methods[name] = method.bind(target) as unknown;
  }
}
