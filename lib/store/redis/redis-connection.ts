import { once } from 'node:events';
import { type Redis } from 'ioredis';
import { loadPeer } from '../../common/load-peer.js';
import { serverPlace } from '../../common/server-place.js';
import { StoreUnavailableError } from '../../common/sessions.error.js';
import { Deadline, DeadlineError } from '../../common/deadline.js';
import { type RedisClient, type ResolvedRedisOptions } from './redis-adapter.options.js';
import { asStoreError, isReadOnly } from './redis-errors.js';

/** After this a connection is asked whether anybody is there; ten questions later it is given up. */
const KEEP_ALIVE_MS = 10_000;
/** Between attempts to connect again: each waits longer than the one before. */
const RETRY_STEP_MS = 50;
const LONGEST_RETRY_MS = 2000;

/** The client that operations are sent with: the application's, which is left as it is, or one of our own. */
export class RedisConnection {
  private connecting: Promise<void> | null = null;

  private constructor(
    readonly client: RedisClient,
    private readonly operationTimeoutMs: number,
    private readonly isOurs: boolean,
  ) {}

  /** @throws StoreUnavailableError when there is no server, or it does not let us in */
  static async open({ client, url = '', operationTimeoutMs }: ResolvedRedisOptions): Promise<RedisConnection> {
    if (client) {
      const connection = new RedisConnection(client, operationTimeoutMs, false);
      // Of a cluster: also until it knows its nodes.
      await connection.read(() => client.ping());
      return connection;
    }
    const ours = await newClient(url, operationTimeoutMs);
    const connection = new RedisConnection(ours, operationTimeoutMs, true);
    await connection.connect(ours, url);
    return connection;
  }

  /** @throws StoreUnavailableError */
  read<T>(operation: () => Promise<T>): Promise<T> {
    return this.call(operation, false);
  }

  /** @throws StoreUnavailableError, which says whether it may have been done */
  write<T>(operation: () => Promise<T>): Promise<T> {
    return this.call(operation, true);
  }

  /** Every server that has a part of the data. */
  primaries(): readonly Redis[] {
    return 'nodes' in this.client ? this.client.nodes('master') : [this.client];
  }

  /** A connection that only listens, and tries for as long as it takes. Whoever uses it subscribes again. */
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
      // Whoever is silent stays so, and whoever is no primary any more may have a successor.
      if (this.isOurs && (error instanceof DeadlineError || isReadOnly(error))) this.connectAgain();
      throw asStoreError(error, writes && isSent);
    }
  }

  private get isReady(): boolean {
    const { status } = this.client;
    // A client may be to connect by its first command.
    return this.connecting === null && (status === 'ready' || status === 'wait');
  }

  /** Waits for one attempt to connect, so that nothing is sent of which nobody knows when. */
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
    // Perhaps nobody waits for it.
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
    // Afterwards every call says so by itself.
    client.on('error', (error: unknown) => {
      refusal = error;
    });
    try {
      await new Deadline(this.operationTimeoutMs).wait(client.connect());
    } catch (error) {
      this.close();
      const cause = refusal ?? error;
      const why = cause instanceof Error ? cause.message : String(cause);
      const place = serverPlace({ url }, 6379);
      const server = place === undefined ? '' : ` at ${place}`;
      throw new StoreUnavailableError(`The Redis store${server} could not be reached: ${why}`, {
        cause,
        maybeApplied: false,
      });
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
