import { Logger } from '@nestjs/common';
import { type JsonValue } from '../common/json.js';
import { hasMethod, missingMethod, missingMethods, type RequiredMethods } from '../common/required-methods.js';
import { Serializer } from '../common/serializer.js';
import { StoreUnavailableError } from '../common/sessions.error.js';
import { DocumentVersions } from '../ledger/document-versions.js';
import {
  type StateAccess,
  type StateAddress,
  type StateAppend,
  type StateDocument,
  type DocumentStore,
  type StateWriteOptions,
} from '../ledger/state.store.js';
import { orchestrationMessages } from './orchestration.messages.js';

/** A key-value store without versions (ORC-15). Only one process at a time may write to a session. */
export interface StorageProvider {
  /** Returns a value. @returns null or `undefined` if it does not exist or has expired */
  get(key: string, options?: { readonly namespace?: string }): Promise<unknown>;
  /**
   * Stores or replaces a value. @param options `ttlSeconds`: the time to live; if absent, the value is stored
   * permanently
   */
  set(
    key: string,
    value: unknown,
    options?: { readonly namespace?: string; readonly ttlSeconds?: number },
  ): Promise<unknown>;
  /** Deletes a value. Has no effect if it does not exist. */
  delete(key: string, options?: { readonly namespace?: string }): Promise<unknown>;
}

/**
 * A client of a key-value store that has `del`, such as Vercel KV, Upstash or node-redis. Documents are stored as JSON
 * strings, without namespaces besides the key. ioredis, cache-manager and Keyv need a wrapper, which their error shows.
 */
export interface KeyValueClient {
  /** Returns the value as a string or parsed; `null` or `undefined` if it does not exist. */
  get(key: string): Promise<unknown>;
  /**
   * Stores the value.
   * @param options seconds until it expires, in the spelling of Upstash (`ex`) and of node-redis (`EX`)
   */
  set(key: string, value: string, options?: { readonly ex: number; readonly EX: number }): Promise<unknown>;
  /** Deletes the value, if it exists. */
  del(key: string): Promise<unknown>;
}

const DOCUMENT_STORE: RequiredMethods<DocumentStore> = {
  get: true,
  set: true,
  append: true,
  delete: true,
  deleteExpired: true,
  evictIdle: true,
};
const STORAGE_PROVIDER: RequiredMethods<StorageProvider> = { get: true, set: true, delete: true };
const KEY_VALUE_CLIENT: RequiredMethods<KeyValueClient> = { get: true, set: true, del: true };

export function isDocumentStore(value: unknown): value is DocumentStore {
  return missingMethods(value, DOCUMENT_STORE).length === 0;
}

/** Returns the first method that a storage provider, or a client with `del`, lacks. A document store has these methods too. */
export function missingOfProvider(value: unknown): string | undefined {
  return missingMethod(value, hasMethod(value, 'del') ? KEY_VALUE_CLIENT : STORAGE_PROVIDER);
}

/** A client whose `set` takes the time to live in another form, so that its keys would not expire. */
interface UnwrappedClient {
  readonly client: string;
  /** Methods that tell the client from others. */
  readonly methods: readonly string[];
  /** The code of a storage provider over the client. */
  readonly wrapper: string;
}

const UNWRAPPED_CLIENTS: readonly UnwrappedClient[] = [
  {
    client: 'ioredis',
    methods: ['del', 'defineCommand'],
    wrapper:
      '{ get: (key) => redis.get(key), ' +
      "set: (key, value, options) => (options ? redis.set(key, value, 'EX', options.EX) : redis.set(key, value)), " +
      'del: (key) => redis.del(key) }',
  },
  {
    client: 'cache-manager',
    methods: ['del', 'wrap'],
    wrapper:
      '{ get: (key) => cache.get(key), set: (key, value, options) => cache.set(key, value, options && options.ex * 1000), ' +
      'del: (key) => cache.del(key) }',
  },
  {
    client: 'Keyv',
    methods: ['delete', 'generateIterator'],
    wrapper:
      '{ get: (key) => keyv.get(key), set: (key, value, options) => keyv.set(key, value, options && options.ex * 1000), ' +
      'del: (key) => keyv.delete(key) }',
  },
];

/** Returns the client that a value is if it needs a wrapper. */
export function unwrappedClient(value: unknown): UnwrappedClient | undefined {
  return UNWRAPPED_CLIENTS.find(({ methods }) => methods.every((name) => hasMethod(value, name)));
}

function providerOf(client: StorageProvider | KeyValueClient): StorageProvider {
  if ('delete' in client) return client;
  return {
    // Some clients parse JSON themselves.
    get: async (key) => parsed(await client.get(key)),
    set: (key, value, { ttlSeconds } = {}) =>
      client.set(key, JSON.stringify(value), ...(ttlSeconds === undefined ? [] : [{ ex: ttlSeconds, EX: ttlSeconds }])),
    delete: (key) => client.del(key),
  };
}

function parsed(stored: unknown): unknown {
  return typeof stored === 'string' ? (JSON.parse(stored) as unknown) : stored;
}

/**
 * A DocumentStore over a provider, which stores whole documents with the times of this process. An operation is a read
 * and a write; concurrent writes of other processes between them are lost. An error of the provider is the cause of a
 * StoreUnavailableError (ORC-14).
 */
export class StorageProviderState implements DocumentStore {
  /** Operations of this process on a key run one after the other. */
  private readonly serializer = new Serializer();
  private readonly versions = new DocumentVersions();

  private readonly provider: StorageProvider;

  constructor(client: StorageProvider | KeyValueClient) {
    this.provider = providerOf(client);
    new Logger('AgentSessions').warn(orchestrationMessages.noCompareAndSet());
  }

  get(address: StateAddress, access?: StateAccess): Promise<StateDocument | null> {
    return this.inOrder(address, async () => {
      const stored = await this.read(address);
      return stored && access ? this.write(address, stored, access) : stored;
    });
  }

  set(address: StateAddress, value: JsonValue, options: StateWriteOptions = {}): Promise<StateDocument | null> {
    return this.inOrder(address, async () => {
      const before = await this.read(address);
      const version = before?.version ?? 0;
      if (options.ifVersion !== undefined && options.ifVersion !== version) return null;
      const createdAt = before?.createdAt ?? new Date().toISOString();
      return this.write(address, { value, batches: [], version: this.nextVersion(version), createdAt }, options);
    });
  }

  append(address: StateAddress, append: StateAppend): Promise<StateDocument | null> {
    return this.inOrder(address, () => this.appendAlone(address, append));
  }

  delete(address: StateAddress): Promise<boolean> {
    return this.inOrder(address, async () => {
      const found = (await this.read(address)) !== null;
      await callProvider(true, () => this.provider.delete(keyOf(address), namespaceOf(address)));
      return found;
    });
  }

  /** Expired documents are removed by the provider. */
  deleteExpired(): Promise<number> {
    return Promise.resolve(0);
  }

  /** The provider cannot list its documents. */
  evictIdle(): Promise<number> {
    return Promise.resolve(0);
  }

  private async read(address: StateAddress): Promise<StateDocument | null> {
    const stored = await callProvider(false, () => this.provider.get(keyOf(address), namespaceOf(address)));
    const document = structuredClone(stored ?? null) as StateDocument | null;
    const { expiresAt } = document ?? {};
    return expiresAt !== undefined && Date.parse(expiresAt) <= Date.now() ? null : document;
  }

  private async appendAlone(address: StateAddress, append: StateAppend): Promise<StateDocument | null> {
    const { id, entries, initial, ifVersion, fold } = append;
    const found = await this.read(address);
    if (!found && initial === undefined) return null;
    if (found?.batches.some((batch) => batch.id === id)) return found;
    if (ifVersion !== undefined && ifVersion !== (found?.version ?? 0)) return found;
    const at = new Date().toISOString();
    const before = found ?? { value: initial!, batches: [], version: 0, createdAt: at };
    const end = fold ? before.batches.findIndex((batch) => batch.id === fold.through) + 1 : 0;
    const batches = before.batches.slice(end);
    const added = entries.length > 0 ? [{ id, at, entries }] : [];
    const after = {
      ...before,
      value: fold && end > 0 ? fold.value : before.value,
      batches: [...batches, ...added],
      version: added.length > 0 || !found ? this.nextVersion(before.version) : before.version,
    };
    return this.write(address, after, append);
  }

  private nextVersion(before: number): number {
    return this.versions.next(before, Date.now());
  }

  /** Replaces the document and renews its expiry. */
  private async write(
    address: StateAddress,
    { value, batches, version, createdAt }: Pick<StateDocument, 'value' | 'batches' | 'version' | 'createdAt'>,
    { ttlMs }: StateAccess,
  ): Promise<StateDocument> {
    const now = Date.now();
    const document: StateDocument = {
      value,
      batches,
      version,
      createdAt,
      accessedAt: new Date(now).toISOString(),
      ...(ttlMs === undefined ? {} : { expiresAt: new Date(now + ttlMs).toISOString() }),
    };
    const ttlSeconds = ttlMs === undefined ? {} : { ttlSeconds: Math.ceil(ttlMs / 1000) };
    await callProvider(true, () =>
      this.provider.set(keyOf(address), document, { ...namespaceOf(address), ...ttlSeconds }),
    );
    return structuredClone(document);
  }

  private inOrder<T>(address: StateAddress, work: () => Promise<T>): Promise<T> {
    return this.serializer.run(keyOf(address), work);
  }
}

async function callProvider<T>(maybeApplied: boolean, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw new StoreUnavailableError('The storageProvider failed. See the cause.', { cause, maybeApplied });
  }
}

function namespaceOf({ namespace }: StateAddress): { readonly namespace: string } {
  return { namespace };
}

/**
 * Builds the key, which includes the namespace because a provider may ignore namespaces. Parts are encoded, because
 * names and ids may contain any character except control characters.
 */
function keyOf({ namespace, scope, sessionId, key }: StateAddress): string {
  return [namespace, scope, sessionId, key].map(encodeURIComponent).join(':');
}
