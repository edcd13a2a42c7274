import { assertId, assertName, mintId } from '../common/ids.js';
import { type JsonObject, type JsonValue, toJson } from '../common/json.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { SessionConflictError } from '../ledger/session.errors.js';
import { MAX_TTL_MS } from './state.inputs.js';
import { type StateAccess, type StateAddress, type StateDocument, type DocumentStore } from '../ledger/state.store.js';
import { CONTESTED, untilUncontested } from './until-uncontested.js';

/** What `defineSessionManager` takes (ORC-16). */
export interface SessionManagerOptions<T> {
  /** Part of stored keys. */
  readonly namespace: string;
  /** What a session begins with. Default `{}`. */
  readonly createDefault?: (sessionId: string) => T;
  /** Idle milliseconds after which a session is gone; `never`. Default 86,400,000 (a day). */
  readonly ttlMs?: number | 'never';
}

/** A state of the application's own. */
export interface ManagedSession<T> {
  readonly sessionId: string;
  readonly state: T;
  readonly metadata: {
    /** ISO-8601, by the store's clock. */
    readonly createdAt: string;
    /** ISO-8601: the last change or read. */
    readonly lastAccessedAt: string;
  };
  readonly version: number;
}

/** As stored: a session has its time to live from its first write on. */
interface Stored extends JsonObject {
  readonly state: JsonValue;
  readonly ttlMs: number | 'never';
}

/**
 * States of any shape, by session, that expire when they are idle (ORC-16). JSON only; what goes in and comes out are copies.
 * All methods reject with StoreUnavailableError when the store does not answer.
 */
export class SessionManager<T> {
  private readonly options: Required<SessionManagerOptions<T>>;
  private readonly store: () => DocumentStore;

  /** @param store `adapter.state` of any adapter, or what finds it. @throws InvalidInputError for wrong options */
  constructor(store: DocumentStore | (() => DocumentStore), options: SessionManagerOptions<T>) {
    this.store = typeof store === 'function' ? store : () => store;
    this.options = checkedOptions(options);
  }

  /**
   * @param sessionId left out: a new id
   * @throws SessionConflictError when it is there already; StateSerializationError
   */
  async create(
    sessionId = mintId(),
    { state, ttlMs = this.options.ttlMs }: { readonly state?: T; readonly ttlMs?: number | 'never' } = {},
  ): Promise<ManagedSession<T>> {
    const first = state === undefined ? this.options.createDefault(sessionId) : state;
    const value: Stored = { state: toJson(first, 'state'), ttlMs: checkedTtl(ttlMs) };
    const document = await this.store().set(this.address(sessionId), value, { ifVersion: 0, ...expiry(ttlMs) });
    if (!document) throw new SessionConflictError(sessionId);
    return toManaged(sessionId, document);
  }

  /** Keeps it from expiring. @returns `null` when there is none, or it has expired */
  async get(sessionId: string): Promise<ManagedSession<T> | null> {
    const address = this.address(sessionId);
    const document = await this.store().get(address);
    // How long it lives is its own affair.
    const accessed = document && (await this.store().get(address, expiry(storedIn(document).ttlMs)));
    return accessed && toManaged(sessionId, accessed);
  }

  /**
   * What a function makes of the state (ORC-16). It is called again when somebody else changed the state meanwhile, so that
   * nothing of that is lost.
   * @returns `null` when there is none
   * @throws what the function throws, and the state is as before; StateSerializationError; StateConflictError when the
   * state never rested
   */
  async update(sessionId: string, change: (state: T) => T | Promise<T>): Promise<ManagedSession<T> | null> {
    const address = this.address(sessionId);
    return untilUncontested(sessionId, async () => {
      const document = await this.store().get(address);
      if (!document) return null;
      const { state, ttlMs } = storedIn(document);
      const value: Stored = { state: toJson(await change(state as T), 'state'), ttlMs };
      const written = await this.store().set(address, value, { ifVersion: document.version, ...expiry(ttlMs) });
      return written ? toManaged<T>(sessionId, written) : CONTESTED;
    });
  }

  /** @returns whether there was one */
  async delete(sessionId: string): Promise<boolean> {
    return this.store().delete(this.address(sessionId));
  }

  private address(sessionId: string): StateAddress {
    assertId(sessionId, 'sessionId');
    return { namespace: this.options.namespace, scope: '', sessionId, key: 'session' };
  }
}

export function checkedOptions<T>(options: SessionManagerOptions<T>): Required<SessionManagerOptions<T>> {
  const { namespace, createDefault = () => ({}) as T, ttlMs = 86_400_000 } = options;
  assertName(namespace, 'namespace');
  if (typeof createDefault !== 'function') throw new InvalidInputError('createDefault', 'must be a function.');
  return { namespace, createDefault, ttlMs: checkedTtl(ttlMs) };
}

function storedIn({ value }: StateDocument): Stored {
  return value as Stored;
}

function toManaged<T>(sessionId: string, document: StateDocument): ManagedSession<T> {
  const { version, createdAt, accessedAt } = document;
  const state = storedIn(document).state as T;
  return { sessionId, state, metadata: { createdAt, lastAccessedAt: accessedAt }, version };
}

function expiry(ttlMs: number | 'never'): StateAccess {
  return ttlMs === 'never' ? {} : { ttlMs };
}

function checkedTtl(ttlMs: unknown): number | 'never' {
  if (ttlMs === 'never' || (Number.isSafeInteger(ttlMs) && (ttlMs as number) >= 1 && (ttlMs as number) <= MAX_TTL_MS)) {
    return ttlMs as number | 'never';
  }
  throw new InvalidInputError('ttlMs', `must be never, or an integer of milliseconds from 1 to ${MAX_TTL_MS}.`);
}
