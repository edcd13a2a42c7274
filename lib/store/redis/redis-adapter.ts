import { Logger } from '@nestjs/common';
import { type Redis } from 'ioredis';
import { loadPeer } from '../../common/load-peer.js';
import { SessionsConfigurationError, StoreUnavailableError } from '../../common/sessions.error.js';
import { type SessionsAdapter } from '../../sessions.adapter.js';
import { type RedisAdapterOptions, type RedisClient } from './redis-adapter.options.js';
import { RedisCheckpoints } from './redis-checkpoints.js';
import { RedisConversations } from './redis-conversations.js';
import { RedisDatabase } from './redis-database.js';
import { asStoreError } from './redis-errors.js';
import { RedisHints } from './redis-hints.js';
import { RedisLeases } from './redis-leases.js';
import { RedisSessions } from './redis-sessions.js';
import { RedisState } from './redis-state.js';
import { RedisTurns } from './redis-turns.js';
import { SCRIPTS } from './scripts/index.js';
import { judgeServer, parseInfo } from './server-report.js';

/**
 * A store in Redis 7 or newer (Valkey too), for any number of processes: every operation is one Lua script.
 *
 * ```ts
 * redisAdapter({ url: 'redis://localhost:6379' })
 * redisAdapter({ client }) // the application's own ioredis client
 * ```
 * @throws SessionsConfigurationError for an option that is not allowed
 */
export function redisAdapter(options: RedisAdapterOptions): SessionsAdapter {
  return RedisAdapter.create(options);
}

class RedisAdapter {
  private readonly logger = new Logger('AgentSessions');
  private readonly hints: RedisHints;
  private client: RedisClient | null = null;

  private constructor(
    private readonly options: RedisAdapterOptions,
    private readonly base: string,
  ) {
    this.hints = new RedisHints(`${options.client?.options.keyPrefix ?? ''}${base}changed`);
  }

  static create(options: RedisAdapterOptions): SessionsAdapter {
    const adapter = new RedisAdapter(options, baseOf(options));
    const database = new RedisDatabase(adapter.base, () => adapter.opened());
    return {
      sessions: new RedisSessions(database),
      turns: new RedisTurns(database),
      hints: adapter.hints,
      checkpoints: new RedisCheckpoints(database),
      conversations: new RedisConversations(database),
      state: new RedisState(database),
      leases: new RedisLeases(database),
      shared: true,
      init: () => adapter.init(),
      ping: () => adapter.ping(),
      close: () => adapter.close(),
    };
  }

  private async init(): Promise<void> {
    if (this.client) return;
    const client = this.options.client ?? (await this.connect());
    this.client = client;
    try {
      for (const warning of judgeServer(parseInfo(await infoOf(client)))) this.logger.warn(`Redis: ${warning}`);
      await Promise.all(SCRIPTS.map(({ lua }) => client.script('LOAD', lua)));
      await this.hints.open(duplicate(client));
    } catch (error) {
      await this.close();
      throw asStoreError(error);
    }
  }

  private async ping(): Promise<void> {
    try {
      await this.opened().ping();
    } catch (error) {
      throw asStoreError(error);
    }
  }

  private async close(): Promise<void> {
    const { client } = this;
    this.client = null;
    this.hints.close();
    if (client && client !== this.options.client) client.disconnect();
  }

  private async connect(): Promise<Redis> {
    const { Redis } = await loadPeer('ioredis', () => import('ioredis'));
    const client = new Redis(this.options.url ?? '', {
      lazyConnect: true,
      // A call that cannot be answered is the caller's to repeat, soon.
      maxRetriesPerRequest: 2,
      // After a failover: to whoever is the primary now.
      reconnectOnError: (error) => (error.message.startsWith('READONLY') ? 2 : false),
    });
    // Every call says so by itself.
    client.on('error', () => {});
    try {
      await client.connect();
    } catch (error) {
      client.disconnect();
      throw new StoreUnavailableError('The Redis store could not be opened.', { cause: error });
    }
    return client;
  }

  private opened(): RedisClient {
    if (!this.client) throw new StoreUnavailableError('The Redis store is not open.');
    return this.client;
  }
}

function baseOf({ client, url, keyPrefix = 'agent-sessions' }: RedisAdapterOptions): string {
  if ((client === undefined) === (url === undefined)) {
    throw new SessionsConfigurationError('redisAdapter: give either client, an ioredis client, or url.');
  }
  // The prefix becomes part of every key, and braces have a meaning there.
  if (!/^[A-Za-z0-9._:-]{1,100}$/.test(keyPrefix)) {
    throw new SessionsConfigurationError(
      `redisAdapter: keyPrefix is ${JSON.stringify(keyPrefix)}; it must be 1 to 100 letters, digits and . _ : -`,
    );
  }
  return `{${keyPrefix}}:`;
}

/** Of a cluster: of any primary. */
async function infoOf(client: RedisClient): Promise<string> {
  return 'nodes' in client ? client.nodes('master')[0].info() : client.info();
}

/** A connection that only listens, and tries for as long as it takes. */
function duplicate(client: RedisClient): RedisClient {
  return 'nodes' in client
    ? client.duplicate([], { keyPrefix: '' })
    : client.duplicate({ keyPrefix: '', maxRetriesPerRequest: null, lazyConnect: false });
}
