import { inspect } from 'node:util';
import { type Cluster, type Redis } from 'ioredis';
import { assertKnownKeys } from '../../common/check-options.js';
import { assertUrlIsSet } from '../../common/server-place.js';
import { SessionsConfigurationError } from '../../common/sessions.error.js';
import { redisMessages } from './redis.messages.js';

/** An ioredis client, for a single server or a Cluster. */
export type RedisClient = Redis | Cluster;

/** The options of `redisAdapter`. Pass either `client` or `url`; all others are optional. */
export interface RedisAdapterOptions {
  /** The application's ioredis client. The adapter never closes it. Default: the adapter creates a client from `url`. */
  readonly client?: RedisClient;
  /** The URL for the adapter's own client: `redis://user:password@host:6379/0`, or `rediss://` for TLS. Required without `client`, and must be left out with it. */
  readonly url?: string;
  /**
   * The prefix of every key: `{keyPrefix}:...`. The braces keep all keys on one shard of a cluster. Must be 1 to 100
   * letters, digits or the characters `. _ : -`. Default `agent-sessions`.
   */
  readonly keyPrefix?: string;
  /**
   * The timeout of an operation in milliseconds, including the wait for a connection. After it, the operation is rejected
   * with `StoreUnavailableError`, and the adapter's own client reconnects. Default 5 000.
   */
  readonly operationTimeoutMs?: number;
}

export interface ResolvedRedisOptions {
  readonly client?: RedisClient;
  readonly url?: string;
  /** The prefix of every key, including the hash tag and the colon. */
  readonly base: string;
  readonly operationTimeoutMs: number;
}

/** The longest delay of a Node timer. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

const KEYS = { client: true, url: true, keyPrefix: true, operationTimeoutMs: true } as const;

/** @throws SessionsConfigurationError for an option that is not allowed */
export function resolveOptions(options: RedisAdapterOptions): ResolvedRedisOptions {
  assertKnownKeys(options, KEYS, 'redisAdapter: ');
  const { client, url, keyPrefix = 'agent-sessions', operationTimeoutMs = 5_000 } = options;
  if (client === undefined) assertUrlIsSet(options, 'redisAdapter: ');
  if ((client === undefined) === (url === undefined)) {
    throw new SessionsConfigurationError('redisAdapter: use either client or url.');
  }
  if (client !== undefined && typeof (client as Partial<RedisClient>).evalsha !== 'function') {
    throw new SessionsConfigurationError(
      `redisAdapter: client must be an ioredis client. Received: ${inspect(client)}.`,
    );
  }
  if (url !== undefined && typeof url !== 'string') {
    throw new SessionsConfigurationError(redisMessages.wrongUrl(inspect(url)));
  }
  // Braces are forbidden: they would change the hash tag of every key.
  if (typeof keyPrefix !== 'string' || !/^[A-Za-z0-9._:-]{1,100}$/.test(keyPrefix)) {
    throw new SessionsConfigurationError(redisMessages.wrongKeyPrefix(inspect(keyPrefix)));
  }
  if (!(Number.isFinite(operationTimeoutMs) && operationTimeoutMs >= 1 && operationTimeoutMs <= LONGEST_TIMEOUT_MS)) {
    throw new SessionsConfigurationError(
      redisMessages.wrongOperationTimeout(LONGEST_TIMEOUT_MS, inspect(operationTimeoutMs)),
    );
  }
  return { client, url, base: `{${keyPrefix}}:`, operationTimeoutMs };
}
