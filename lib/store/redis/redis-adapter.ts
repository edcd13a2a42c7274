import { Logger } from '@nestjs/common';
import { serverPlace } from '../../common/server-place.js';
import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { NotifiedTurnChanges } from '../core/notifications.js';
import { notOpen } from '../core/store-failure.js';
import { type RedisAdapterOptions, resolveOptions, type ResolvedRedisOptions } from './redis-adapter.options.js';
import { RedisCheckpoints } from './redis-checkpoints.js';
import { RedisConnection } from './redis-connection.js';
import { RedisConversations } from './redis-conversations.js';
import { RedisDatabase } from './redis-database.js';
import { RedisNotifications } from './redis-notifications.js';
import { RedisLeases } from './redis-leases.js';
import { RedisSessions } from './redis-sessions.js';
import { RedisState } from './redis-state.js';
import { RedisTurnEvents } from './redis-turn-events.js';
import { RedisTurns } from './redis-turns.js';
import { checkReplies } from './reply-check.js';
import { checkServer, probeRedis } from './server-check.js';
import { SCRIPTS } from './redis-scripts.js';

/**
 * Creates a store on Redis 7 or newer, for any number of processes. Every operation runs one atomic Lua script.
 *
 * ```ts
 * redisAdapter({ url: 'redis://localhost:6379' })
 * redisAdapter({ client }) // the application's ioredis client
 * ```
 * @throws SessionsConfigurationError for an invalid option
 */
export function redisAdapter(options: RedisAdapterOptions): SessionsAdapter {
  return RedisAdapter.create(resolveOptions(options));
}

class RedisAdapter {
  private readonly logger = new Logger('AgentSessions');
  private readonly notifications: RedisNotifications;
  private connection: RedisConnection | null = null;

  private constructor(private readonly options: ResolvedRedisOptions) {
    const base = `${options.client?.options.keyPrefix ?? ''}${options.base}`;
    this.notifications = new RedisNotifications(base, options.operationTimeoutMs);
  }

  static create(options: ResolvedRedisOptions): SessionsAdapter {
    const adapter = new RedisAdapter(options);
    const database = new RedisDatabase(options.base, () => adapter.opened());
    const changes = new NotifiedTurnChanges(adapter.notifications);
    return {
      sessions: new RedisSessions(database),
      turns: new RedisTurns(database, (turnId, turn) => changes.emit(turnId, turn)),
      changes,
      events: new RedisTurnEvents(database, adapter.notifications),
      checkpoints: new RedisCheckpoints(database),
      conversations: new RedisConversations(database),
      state: new RedisState(database),
      leases: new RedisLeases(database),
      shared: true,
      system: 'redis',
      label: labelOf(options),
      init: (limits) => adapter.init(limits?.maxValueBytes),
      ping: () => adapter.ping(),
      probe: async () => probeRedis(adapter.opened(), options.base),
      close: () => adapter.close(),
    };
  }

  private async init(maxValueBytes = 0): Promise<void> {
    if (this.connection) return;
    const connection = await RedisConnection.open(this.options);
    this.connection = connection;
    try {
      await checkServer(connection, this.options.base, this.logger, maxValueBytes);
      await connection.read(() => this.loadScripts(connection));
      await checkReplies(connection, this.options.base);
      await connection.read(() => this.notifications.open(connection.subscriber()));
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  private loadScripts(connection: RedisConnection): Promise<unknown> {
    return Promise.all(
      connection.primaries().flatMap((server) => Object.values(SCRIPTS).map(({ lua }) => server.script('LOAD', lua))),
    );
  }

  private async ping(): Promise<void> {
    const connection = this.opened();
    await connection.read(() => connection.client.ping());
  }

  private async close(): Promise<void> {
    this.notifications.close();
    this.connection?.close();
    this.connection = null;
  }

  private opened(): RedisConnection {
    if (!this.connection) throw notOpen('Redis store');
    return this.connection;
  }
}

/** @returns the server of the URL or of the client; a Cluster has several */
function labelOf({ client, url }: ResolvedRedisOptions): string {
  const place = serverPlace(client ? client.options : { url }, 6379);
  return place === undefined ? 'Redis' : `Redis at ${place}`;
}
