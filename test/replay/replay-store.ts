import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { type RedisAdapterOptions } from 'nestjs-agent-sessions/redis';
import { type TypeormAdapterOptions } from 'nestjs-agent-sessions/typeorm';
import { mariadb } from '../support/services/mariadb.js';
import { postgres } from '../support/services/postgres.js';
import { redis } from '../support/services/redis.js';
import { startService } from '../support/services/services.js';
import { type ReplayAdapter } from './replay-options.js';

export interface ReplayStore {
  /** Left out for memory, which is the worker's own. */
  readonly options?: TypeormAdapterOptions | RedisAdapterOptions;
  readonly close: () => Promise<void>;
}

const SERVICES = { postgres, mysql: mariadb, redis };

/** An empty store that outlives the workers. */
export async function openStore(adapter: ReplayAdapter, folder: string): Promise<ReplayStore> {
  if (adapter === 'memory') return { close: async () => {} };
  if (adapter === 'sqlite') {
    const database = join(folder, 'sessions.db');
    return { options: { dataSource: { type: 'better-sqlite3', database } }, close: async () => {} };
  }
  const { url, stop } = await startService(SERVICES[adapter]);
  // On a server that is not ours other replays may have left their data.
  const tablePrefix = `replay_${randomBytes(4).toString('hex')}_`;
  if (adapter === 'redis') return { options: { url, keyPrefix: tablePrefix }, close: stop };
  return { options: { dataSource: { type: adapter, url }, tablePrefix, migrationsRun: true }, close: stop };
}
