import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { type StoreOptions } from '../support/connections.js';
import { type QueuePlace } from '../support/queues.js';
import { mariadb } from '../support/services/mariadb.js';
import { postgres } from '../support/services/postgres.js';
import { redis } from '../support/services/redis.js';
import { startService } from '../support/services/services.js';
import { type ReplayOptions } from './replay-options.js';

export interface ReplayPlace {
  /** Absent for memory, which is local to the worker. */
  readonly store?: StoreOptions;
  /** Absent for a queue that is local to the worker. */
  readonly queue?: QueuePlace;
  readonly close: () => Promise<void>;
}

const SERVICES = { postgres, mysql: mariadb, redis };

/** Opens an empty store that outlives the workers, and a queue that they share. */
export async function openPlace({ adapter, queue }: ReplayOptions, folder: string): Promise<ReplayPlace> {
  if (adapter === 'memory') return { close: async () => {} };
  if (adapter === 'sqlite') {
    const database = join(folder, 'sessions.db');
    return { store: { dataSource: { type: 'better-sqlite3', database } }, close: async () => {} };
  }
  // Earlier replays may have left data on an existing server.
  const prefix = `replay_${randomBytes(4).toString('hex')}_`;
  const server = await startService(SERVICES[adapter]);
  const store: ReplayPlace['store'] =
    adapter === 'redis'
      ? { url: server.url, keyPrefix: prefix }
      : { dataSource: { type: adapter, url: server.url }, tablePrefix: prefix, migrationsRun: true };
  if (queue === 'in-process') return { store, close: server.stop };

  const place = `${prefix}notifications`;
  if (adapter !== 'mysql') return { store, queue: { server: adapter, url: server.url, place }, close: server.stop };
  const other = await startService(redis);
  const close = async (): Promise<void> => {
    await Promise.all([server.stop(), other.stop()]);
  };
  return { store, queue: { server: 'redis', url: other.url, place }, close };
}
