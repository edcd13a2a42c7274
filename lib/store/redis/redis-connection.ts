import { once } from 'node:events';
import { type Redis } from 'ioredis';
import { loadPeer } from '../../common/load-peer.js';
import { serverPlace } from '../../common/server-place.js';
import { SessionsConfigurationError, StoreUnavailableError } from '../../common/sessions.error.js';
import { Deadline, DeadlineError } from '../../common/deadline.js';
import { errorType } from '../../common/error-trace.js';
import { type RedisClient, type ResolvedRedisOptions } from './redis-adapter.options.js';
import { asStoreError, BulkTooLargeError, isReadOnly, isRefused } from './redis-errors.js';
import { redisMessages } from './redis.messages.js';

/** The idle time before the first TCP keep-alive probe. The connection is closed after ten unanswered probes. */
const KEEP_ALIVE_MS = 10_000;
/** The delay before a reconnect grows by this step with each attempt. */
const RETRY_STEP_MS = 50;
const LONGEST_RETRY_MS = 2000;
/** The default of `proto-max-bulk-len`. */
const DEFAULT_MAX_VALUE_BYTES = 536_870_912;

/**
 * The client that sends operations: the application's, which is never changed or closed, or the adapter's own. An
 * application's client that reads integers as strings is replaced by a copy that reads numbers (FIX-66).
 */
export class RedisConnection {
  private connecting: Promise<void> | null = null;
  private maxValueBytes = DEFAULT_MAX_VALUE_BYTES;

  private constructor(
    readonly client: RedisClient,
    private readonly operationTimeoutMs: number,
    private readonly isOurs: boolean,
  ) {}

  /** @throws StoreUnavailableError if the server cannot be reached; SessionsConfigurationError if it rejects the password */
  static async open({ client, url = '', operationTimeoutMs }: ResolvedRedisOptions): Promise<RedisConnection> {
    if (client) return RedisConnection.use(readingNumbers(client), operationTimeoutMs, client);
    const ours = await newClient(url, operationTimeoutMs);
    const connection = new RedisConnection(ours, operationTimeoutMs, true);
    await connection.connect(ours, url);
    return connection;
  }

  /** @param given the application's client, which stays open */
  private static async use(
    client: RedisClient,
    operationTimeoutMs: number,
    given: RedisClient,
  ): Promise<RedisConnection> {
    const connection = new RedisConnection(client, operationTimeoutMs, client !== given);
    try {
      // With a Cluster, this also waits until the client knows its nodes.
      await connection.read(() => client.ping());
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /** @throws StoreUnavailableError */
  read<T>(operation: () => Promise<T>): Promise<T> {
    return this.call(operation, false);
  }

  /** @throws StoreUnavailableError; its `maybeApplied` says whether the write may have happened */
  write<T>(operation: () => Promise<T>): Promise<T> {
    return this.call(operation, true);
  }

  /** @param maxBytes the `proto-max-bulk-len` of a server */
  limitValues(maxBytes: number): void {
    this.maxValueBytes = Math.min(this.maxValueBytes, maxBytes);
  }

  /** @throws BulkTooLargeError */
  assertFits(values: readonly (string | number)[]): void {
    for (const value of values) {
      // A character has at most three bytes of UTF-8.
      if (typeof value !== 'string' || 3 * value.length <= this.maxValueBytes) continue;
      const bytes = Buffer.byteLength(value);
      if (bytes > this.maxValueBytes) throw new BulkTooLargeError(bytes, this.maxValueBytes);
    }
  }

  /** Returns the primaries: a client per shard, or the client itself without a Cluster. */
  primaries(): readonly Redis[] {
    return 'nodes' in this.client ? this.client.nodes('master') : [this.client];
  }

  /** Creates a connection for SUBSCRIBE that reconnects indefinitely. The caller resubscribes after each reconnect. */
  subscriber(): RedisClient {
    if ('nodes' in this.client) return this.client.duplicate([], { enableOfflineQueue: true });
    return this.client.duplicate({
      lazyConnect: false,
      enableOfflineQueue: true,
      autoResubscribe: false,
      maxRetriesPerRequest: null,
      keepAlive: KEEP_ALIVE_MS,
    });
  }

  close(): void {
    if (this.isOurs && this.client.status !== 'end') this.client.disconnect();
  }

  private async call<T>(operation: () => Promise<T>, writes: boolean): Promise<T> {
    const deadline = new Deadline(this.operationTimeoutMs);
    let isSent = false;
    try {
      if (!this.isReady) await deadline.wait(this.ready());
      isSent = true;
      return await deadline.wait(operation());
    } catch (error) {
      // A silent connection is unlikely to recover, and after a failover another server is the primary.
      if (this.isOurs && (error instanceof DeadlineError || isReadOnly(error))) this.connectAgain();
      throw asStoreError(error, writes && isSent);
    }
  }

  private get isReady(): boolean {
    const { status } = this.client;
    // With `lazyConnect`, a client in status `wait` connects on its first command.
    return this.connecting === null && (status === 'ready' || status === 'wait');
  }

  /** Waits for one connection attempt, so that no command waits in the offline queue and is sent later. */
  private async ready(): Promise<void> {
    if (this.connecting === null) {
      if (this.client.status === 'end') throw new Error('Connection is closed.');
      this.waitForAttempt(this.nextAttempt());
    }
    await this.connecting;
  }

  private connectAgain(): void {
    if (this.client.status === 'ready' && this.connecting === null) {
      this.waitForAttempt(once(this.client, 'close').then(() => this.nextAttempt()));
    }
    this.client.disconnect(true);
  }

  private waitForAttempt(attempt: Promise<void>): void {
    this.connecting = attempt.finally(() => {
      this.connecting = null;
    });
    // Prevents an unhandled rejection when no operation waits for the attempt.
    this.connecting.catch(() => {});
  }

  private nextAttempt(): Promise<void> {
    const { client } = this;
    return new Promise((resolve, reject) => {
      const connected = (): void => {
        client.off('close', failed);
        resolve();
      };
      const failed = (): void => {
        client.off('ready', connected);
        reject(new Error('Connection is closed.'));
      };
      client.once('ready', connected);
      client.once('close', failed);
    });
  }

  private async connect(client: Redis, url: string): Promise<void> {
    let refusal: unknown;
    // After the connection is open, every call reports its own errors.
    client.on('error', (error: unknown) => {
      refusal = error;
    });
    try {
      await new Deadline(this.operationTimeoutMs).wait(client.connect());
    } catch (error) {
      this.close();
      const cause = refusal ?? error;
      // The error for a host with several addresses has an empty message.
      const why = cause instanceof Error ? cause.message || errorType(cause) : String(cause);
      const place = serverPlace({ url }, 6379);
      const server = place === undefined ? '' : ` at ${place}`;
      if (isRefused(cause)) {
        throw new SessionsConfigurationError(redisMessages.connectionRejected(server, why), { cause });
      }
      throw new StoreUnavailableError(redisMessages.notReached(server, why), { cause, maybeApplied: false });
    }
  }
}

/** Returns the client, or its copy if it reads integers as strings. */
function readingNumbers(client: RedisClient): RedisClient {
  const options = 'nodes' in client ? client.options.redisOptions : client.options;
  if (options?.stringNumbers !== true) return client;
  const numbers = { stringNumbers: false };
  const copy =
    'nodes' in client ? client.duplicate([], { redisOptions: { ...options, ...numbers } }) : client.duplicate(numbers);
  // Every call reports its own errors.
  copy.on('error', () => {});
  return copy;
}

async function newClient(url: string, operationTimeoutMs: number): Promise<Redis> {
  const { Redis } = await loadPeer('ioredis', () => import('ioredis'));
  let isOpen = false;
  const client = new Redis(url, {
    lazyConnect: true,
    connectTimeout: operationTimeoutMs,
    keepAlive: KEEP_ALIVE_MS,
    // Rejects commands in flight when the connection breaks: the caller decides whether to send them again.
    maxRetriesPerRequest: 0,
    // Tries the first connection only once, so that a failed startup is reported at once.
    retryStrategy: (times) => (isOpen ? Math.min(times * RETRY_STEP_MS, LONGEST_RETRY_MS) : null),
  });
  client.once('ready', () => {
    isOpen = true;
  });
  return client;
}
