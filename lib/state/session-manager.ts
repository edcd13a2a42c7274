import { assertId, assertName, mintId, problemOf } from '../common/ids.js';
import { isFields, type JsonObject, type JsonValue, toJson } from '../common/json.js';
import { unknownKeyRule } from '../common/known-keys.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { RESERVED_PREFIX } from '../ledger/namespaces.js';
import { SessionConflictError } from '../ledger/session.errors.js';
import { MAX_TTL_MS } from './state.inputs.js';
import { type StateAccess, type StateAddress, type StateDocument, type DocumentStore } from '../ledger/state.store.js';
import { CONTESTED, untilUncontested } from './until-uncontested.js';

/** The options of a session manager (ORC-16). Its definition also identifies it for registration and injection. */
export interface SessionManagerDefinition<T = unknown> {
  /** The namespace of the sessions; part of stored keys. */
  readonly namespace: string;
  /** Returns the initial state of a session. Default `{}`. */
  readonly createDefault?: (sessionId: string) => T;
  /** Idle milliseconds after which a session expires, or `never`. Default 86,400,000 (a day). */
  readonly ttlMs?: number | 'never';
}

/** A session with an application-defined state. */
export interface ManagedSession<T> {
  readonly sessionId: string;
  readonly state: T;
  readonly metadata: {
    /** ISO-8601, by the store's clock. */
    readonly createdAt: string;
    /** The time of the last change or read: ISO-8601. */
    readonly lastAccessedAt: string;
  };
  readonly version: number;
}

/** The stored form. The time to live of a session is set by its first write. */
interface Stored extends JsonObject {
  readonly state: JsonValue;
  readonly ttlMs: number | 'never';
}

/**
 * Stores states of any shape by session, which expire when idle (ORC-16). States are JSON and copied on input and
 * output.
 * All methods reject with StoreUnavailableError if the store does not respond.
 */
export class SessionManager<T> {
  private readonly options: Required<SessionManagerDefinition<T>>;
  private readonly store: () => DocumentStore;

  /**
   * @param store `adapter.state` of any adapter, or a function that returns it
   * @throws InvalidInputError for invalid options
   */
  constructor(store: DocumentStore | (() => DocumentStore), options: SessionManagerDefinition<T>) {
    this.store = typeof store === 'function' ? store : () => store;
    this.options = checkedOptions(options);
  }

  /**
   * Creates a session.
   * @param sessionId default: a generated id
   * @throws SessionConflictError if the session exists; StateSerializationError
   */
  async create(
    sessionId = mintId(),
    options: { readonly state?: T; readonly ttlMs?: number | 'never' } = {},
  ): Promise<ManagedSession<T>> {
    assertKeys(options, ['state', 'ttlMs']);
    const { state, ttlMs = this.options.ttlMs } = options;
    const first = state === undefined ? this.options.createDefault(sessionId) : state;
    const value: Stored = { state: toJson(first, 'state'), ttlMs: checkedTtl(ttlMs) };
    const document = await this.store().set(this.address(sessionId), value, { ifVersion: 0, ...expiry(ttlMs) });
    if (!document) throw new SessionConflictError(sessionId);
    return toManaged(sessionId, document);
  }

  /** Returns the session and postpones its expiry. @returns `null` if it does not exist or has expired */
  async get(sessionId: string): Promise<ManagedSession<T> | null> {
    const address = this.address(sessionId);
    const document = await this.store().get(address);
    // Use the time to live that is stored with the session.
    const accessed = document && (await this.store().get(address, expiry(storedIn(document).ttlMs)));
    return accessed && toManaged(sessionId, accessed);
  }

  /**
   * Replaces the state by the result of a function (ORC-16). The function is called again if the state was changed
   * concurrently, so that no change is lost.
   * @returns `null` if the session does not exist
   * @throws the error of the function, which leaves the state unchanged; StateSerializationError; StateConflictError if
   * the state kept changing
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

  /** @returns whether the session existed */
  async delete(sessionId: string): Promise<boolean> {
    return this.store().delete(this.address(sessionId));
  }

  private address(sessionId: string): StateAddress {
    assertId(sessionId, 'sessionId');
    return { namespace: this.options.namespace, scope: '', sessionId, key: 'session' };
  }
}

export function checkedOptions<T>(options: SessionManagerDefinition<T>): Required<SessionManagerDefinition<T>> {
  assertKeys(options, ['namespace', 'createDefault', 'ttlMs']);
  const { namespace, createDefault = () => ({}) as T, ttlMs = 86_400_000 } = options;
  assertName(namespace, 'namespace');
  if (namespace.startsWith(RESERVED_PREFIX)) {
    throw new InvalidInputError(
      'namespace',
      `must not begin with ${RESERVED_PREFIX}, which is reserved for this package.`,
    );
  }
  if (typeof createDefault !== 'function') throw new InvalidInputError('createDefault', 'must be a function.');
  return { namespace, createDefault, ttlMs: checkedTtl(ttlMs) };
}

/** @throws InvalidInputError for options that are not an object, or have an unknown key */
function assertKeys(options: unknown, known: readonly string[]): void {
  if (!isFields(options)) throw new InvalidInputError('options', problemOf('must be an object.', options));
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  const rule = unknownKeyRule(unknown, known);
  throw new InvalidInputError(
    `options.${unknown}`,
    unknown === 'ttlSeconds' ? `${rule} Use ttlMs, in milliseconds.` : rule,
  );
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
  throw new InvalidInputError('ttlMs', `must be "never" or an integer from 1 to ${MAX_TTL_MS} (milliseconds).`);
}
