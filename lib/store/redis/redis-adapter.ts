import { Logger } from '@nestjs/common';
import { StoreUnavailableError } from '../../common/sessions.error.js';
import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { type RedisAdapterOptions, resolveOptions, type ResolvedRedisOptions } from './redis-adapter.options.js';
import { RedisCheckpoints } from './redis-checkpoints.js';
import { RedisConnection } from './redis-connection.js';
import { RedisConversations } from './redis-conversations.js';
import { RedisDatabase } from './redis-database.js';
import { RedisHints } from './redis-hints.js';
import { RedisLeases } from './redis-leases.js';
import { RedisSessions } from './redis-sessions.js';
import { RedisState } from './redis-state.js';
import { RedisTurnEvents } from './redis-turn-events.js';
import { RedisTurns } from './redis-turns.js';
import { checkServer } from './server-check.js';
import { SCRIPTS } from './redis-scripts.js';

/**
 * A store in Redis 7 or newer, for any number of processes: every operation is one Lua script.
 *
 * ```ts
 * redisAdapter({ url: 'redis://localhost:6379' })
 * redisAdapter({ client }) // the application's own ioredis client
 * ```
 * @throws SessionsConfigurationError for an option that is not allowed
 */
export function redisAdapter(options: RedisAdapterOptions): SessionsAdapter {
  return RedisAdapter.create(resolveOptions(options));
}

class RedisAdapter {
  private readonly logger = new Logger('AgentSessions');
  private readonly hints: RedisHints;
  private connection: RedisConnection | null = null;

  private constructor(private readonly options: ResolvedRedisOptions) {
    const channel = `${options.client?.options.keyPrefix ?? ''}${options.base}changed`;
    this.hints = new RedisHints(channel, options.operationTimeoutMs);
  }

  static create(options: ResolvedRedisOptions): SessionsAdapter {
    const adapter = new RedisAdapter(options);
    const database = new RedisDatabase(options.base, () => adapter.opened());
    return {
      sessions: new RedisSessions(database),
      turns: new RedisTurns(database, (turnId, turn) => adapter.hints.tell(turnId, turn)),
      hints: adapter.hints,
      events: new RedisTurnEvents(database),
      checkpoints: new RedisCheckpoints(database),
      conversations: new RedisConversations(database),
      state: new RedisState(database),
      leases: new RedisLeases(database),
      shared: true,
      system: 'redis',
      init: () => adapter.init(),
      ping: () => adapter.ping(),
      close: () => adapter.close(),
    };
  }

  private async init(): Promise<void> {
    if (this.connection) return;
    const connection = await RedisConnection.open(this.options);
    this.connection = connection;
    try {
      await checkServer(connection, this.options.base, this.logger);
      await connection.read(() => this.loadScripts(connection));
      await connection.read(() => this.hints.open(connection.subscriber()));
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
    this.hints.close();
    this.connection?.close();
    this.connection = null;
  }

  private opened(): RedisConnection {
    if (!this.connection) throw new StoreUnavailableError('The Redis store is not open.', { maybeApplied: false });
    return this.connection;
  }
}
