import { inspect } from 'node:util';
import { type Cluster, type Redis } from 'ioredis';
import { assertKnownKeys } from '../../common/known-keys.js';
import { assertUrlIsSet } from '../../common/server-place.js';
import { SessionsConfigurationError } from '../../common/sessions.error.js';

/** A client of ioredis, of one server or of a Cluster. */
export type RedisClient = Redis | Cluster;

/** What `redisAdapter` takes: `client` or `url`, and the rest has defaults. */
export interface RedisAdapterOptions {
  /** The application's ioredis client, which stays open when the adapter closes. Default: one of our own, by `url`. */
  readonly client?: RedisClient;
  /** Of a client of our own: `redis://user:password@host:6379/0`, `rediss://` for TLS. Left out: `client` is given. */
  readonly url?: string;
  /**
   * Every key is named `{keyPrefix}:...`; the braces keep all of them on one shard of a cluster. 1 to 100 letters, digits
   * and `. _ : -`. Default `agent-sessions`.
   */
  readonly keyPrefix?: string;
  /**
   * Milliseconds until an operation without an answer is rejected with `StoreUnavailableError`, its wait for a connection
   * included; a connection of our own that did not answer is made anew. Default 5 000.
   */
  readonly operationTimeoutMs?: number;
}

export interface ResolvedRedisOptions {
  readonly client?: RedisClient;
  readonly url?: string;
  /** Before every key, with the tag that keeps them together. */
  readonly base: string;
  readonly operationTimeoutMs: number;
}

/** Of a timer in Node. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

const KEYS = { client: true, url: true, keyPrefix: true, operationTimeoutMs: true } as const;

/** @throws SessionsConfigurationError for an option that is not allowed */
export function resolveOptions(options: RedisAdapterOptions): ResolvedRedisOptions {
  assertKnownKeys(options, KEYS, 'redisAdapter: ');
  const { client, url, keyPrefix = 'agent-sessions', operationTimeoutMs = 5_000 } = options;
  if (client === undefined) assertUrlIsSet(options, 'redisAdapter: ');
  if ((client === undefined) === (url === undefined)) {
    throw new SessionsConfigurationError('redisAdapter: give either client or url.');
  }
  if (client !== undefined && typeof (client as Partial<RedisClient>).evalsha !== 'function') {
    throw new SessionsConfigurationError(`redisAdapter: client is ${inspect(client)}; it must be an ioredis client.`);
  }
  if (url !== undefined && typeof url !== 'string') {
    throw new SessionsConfigurationError(`redisAdapter: url is ${inspect(url)}; it must be as redis://localhost:6379.`);
  }
  // The prefix becomes part of every key, and braces have a meaning there.
  if (typeof keyPrefix !== 'string' || !/^[A-Za-z0-9._:-]{1,100}$/.test(keyPrefix)) {
    throw new SessionsConfigurationError(
      `redisAdapter: keyPrefix is ${inspect(keyPrefix)}; it must be 1 to 100 letters, digits and . _ : -`,
    );
  }
  if (!(Number.isFinite(operationTimeoutMs) && operationTimeoutMs >= 1 && operationTimeoutMs <= LONGEST_TIMEOUT_MS)) {
    throw new SessionsConfigurationError(
      `redisAdapter: operationTimeoutMs is ${inspect(operationTimeoutMs)}; it must be a number of milliseconds, 1 to ${LONGEST_TIMEOUT_MS}.`,
    );
  }
  return { client, url, base: `{${keyPrefix}}:`, operationTimeoutMs };
}
