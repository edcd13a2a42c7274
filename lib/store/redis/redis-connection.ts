import { type Redis } from 'ioredis';
import { loadPeer } from '../../common/load-peer.js';
import { StoreUnavailableError } from '../../common/sessions.error.js';
import { Deadline, DeadlineError } from '../deadline.js';
import { type RedisClient, type ResolvedRedisOptions } from './redis-adapter.options.js';
import { asStoreError, isReadOnly } from './redis-errors.js';

/** After this a connection is asked whether anybody is there; ten questions later it is given up. */
const KEEP_ALIVE_MS = 10_000;
/** Between attempts to connect again: each waits longer than the one before. */
const RETRY_STEP_MS = 50;
const LONGEST_RETRY_MS = 2000;

/** The client that operations are sent with: the application's, which is left as it is, or one of our own. */
export class RedisConnection {
  private constructor(
    readonly client: RedisClient,
    private readonly operationTimeoutMs: number,
    private readonly isOurs: boolean,
  ) {}

  /** @throws StoreUnavailableError when there is no server, or it does not let us in */
  static async open({ client, url = '', operationTimeoutMs }: ResolvedRedisOptions): Promise<RedisConnection> {
    const connection = new RedisConnection(
      client ?? (await newClient(url, operationTimeoutMs)),
      operationTimeoutMs,
      client === undefined,
    );
    await connection.connect();
    return connection;
  }

  /** One operation, and how long it may take. @throws StoreUnavailableError */
  async call<T>(operation: (client: RedisClient) => Promise<T>): Promise<T> {
    try {
      return await new Deadline(this.operationTimeoutMs).wait(operation(this.client));
    } catch (error) {
      // Whoever is silent stays so, and whoever is no primary any more may have a successor.
      if (this.isOurs && (error instanceof DeadlineError || isReadOnly(error))) this.client.disconnect(true);
      throw asStoreError(error);
    }
  }

  /** Every server that has a part of the data. */
  primaries(): readonly Redis[] {
    return 'nodes' in this.client ? this.client.nodes('master') : [this.client];
  }

  /** A connection that only listens, and tries for as long as it takes. */
  subscriber(): RedisClient {
    if ('nodes' in this.client) return this.client.duplicate([], { keyPrefix: '', enableOfflineQueue: true });
    return this.client.duplicate({
      keyPrefix: '',
      lazyConnect: false,
      enableOfflineQueue: true,
      maxRetriesPerRequest: null,
      keepAlive: KEEP_ALIVE_MS,
    });
  }

  close(): void {
    if (this.isOurs && this.client.status !== 'end') this.client.disconnect();
  }

  private async connect(): Promise<void> {
    if (!this.isOurs) {
      // Of a cluster: also until it knows its nodes.
      await this.call((client) => client.ping());
      return;
    }
    let refusal: unknown;
    // Afterwards every call says so by itself.
    this.client.on('error', (error: unknown) => {
      refusal = error;
    });
    try {
      await new Deadline(this.operationTimeoutMs).wait(this.client.connect());
    } catch (error) {
      this.close();
      const cause = refusal ?? error;
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new StoreUnavailableError(`The Redis store could not be reached: ${why}`, { cause });
    }
  }
}

async function newClient(url: string, operationTimeoutMs: number): Promise<Redis> {
  const { Redis } = await loadPeer('ioredis', () => import('ioredis'));
  let isOpen = false;
  const client = new Redis(url, {
    lazyConnect: true,
    connectTimeout: operationTimeoutMs,
    keepAlive: KEEP_ALIVE_MS,
    // What was sent when the connection broke is rejected: the caller knows whether to send it again.
    maxRetriesPerRequest: 0,
    // The first connection is tried once: whoever starts the application decides what follows.
    retryStrategy: (times) => (isOpen ? Math.min(times * RETRY_STEP_MS, LONGEST_RETRY_MS) : null),
  });
  client.once('ready', () => {
    isOpen = true;
  });
  return client;
}
