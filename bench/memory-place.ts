import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { createPostgresBackend } from 'bullmq';
import { Redis } from 'ioredis';
import { type SessionsAdapter, type TurnQueue } from 'nestjs-agent-sessions';
import { bullmqQueue, type BullmqQueueOptions } from 'nestjs-agent-sessions/bullmq';
import { redisAdapter } from 'nestjs-agent-sessions/redis';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import pg from 'pg';
import { postgres } from '../test/support/services/postgres.js';
import { redis } from '../test/support/services/redis.js';
import { startPrivateService } from '../test/support/services/services.js';
import { type StoreName } from './stores.js';

const PREFIX = 'bench_memory_';
const QUEUE = 'bench-memory-queue';
/** The default size of the pools of the store and BullMQ, and the number of the worker's slots. */
const CONNECTIONS = 10;
const SLOTS = 32;
/** Keys of Redis that belong to a turn or its attempts, and stay until it is purged. */
const OF_TURNS = /^\{bench_memory_\}:(turn|steps|signals|events):/;

/** The store and the queue of the process of PRF-12. */
export interface MemoryPlace {
  readonly store: StoreName;
  /** The address of a server, or a file. */
  readonly url: string;
}

/** The data of idle lanes outside of the process. */
export interface Remains {
  /** Keys or rows of the queue, without its list of the last thousand events; 0 if there is no queue. */
  readonly queue: number;
  /** Keys or rows of the store without turns: sessions, lanes and fixed data. */
  readonly lanes: number;
}

export interface OpenPlace {
  readonly place: MemoryPlace;
  /**
   * The number of ids that clients may keep, independent of the number of lanes: `pg` keeps the first answer of a connection, BullMQ the
   * last job of a worker slot.
   */
  readonly parts: number;
  count(): Promise<Remains>;
  close(): Promise<void>;
}

const OPENERS: Readonly<Partial<Record<StoreName, () => Promise<OpenPlace>>>> = {
  redis: openRedis,
  postgres: openPostgres,
  sqlite: openSqlite,
};

export async function openPlace(store: StoreName): Promise<OpenPlace> {
  const open = OPENERS[store];
  if (!open) throw new Error(`There is no place for the memory of ${store}.`);
  return open();
}

export function adapterAt({ store, url }: MemoryPlace): SessionsAdapter {
  if (store === 'redis') return redisAdapter({ url, keyPrefix: PREFIX });
  if (store === 'postgres') {
    return typeormAdapter({ dataSource: { type: 'postgres', url }, tablePrefix: PREFIX, migrationsRun: true });
  }
  const dataSource = { type: 'better-sqlite3', database: url } as const;
  return typeormAdapter({ dataSource, tablePrefix: PREFIX, sqlite: { synchronous: 'NORMAL' } });
}

/** @returns `undefined` for the store in the process */
export function queueAt({ store, url }: MemoryPlace): TurnQueue | undefined {
  if (store === 'redis') return bullmqQueue({ connection: { url }, prefix: QUEUE });
  if (store === 'sqlite') return undefined;
  const connection = { connectionString: url, schema: 'notifications', migrate: true };
  const options: unknown = { connection, name: QUEUE, backendFactory: createPostgresBackend };
  return bullmqQueue(options as BullmqQueueOptions);
}

async function openRedis(): Promise<OpenPlace> {
  const { url, stop } = await startPrivateService(redis);
  const client = new Redis(url);
  return {
    place: { store: 'redis', url },
    parts: SLOTS,
    count: async () => {
      const keys = await client.keys('*');
      const ofQueue = keys.filter((key) => key.startsWith(`${QUEUE}:`) && !key.endsWith(':events'));
      const ofStore = keys.filter((key) => key.startsWith(`{${PREFIX}}:`) && !OF_TURNS.test(key));
      return { queue: ofQueue.length, lanes: ofStore.length };
    },
    close: async () => {
      client.disconnect();
      await stop();
    },
  };
}

async function openPostgres(): Promise<OpenPlace> {
  const { url, stop } = await startPrivateService(postgres);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const count = async (tables: readonly string[]): Promise<number> => {
    const counts = tables.map((table) => `SELECT count(*) AS n FROM ${table}`).join(' UNION ALL ');
    const { rows } = await client.query<{ total: string }>(`SELECT sum(n) AS total FROM (${counts}) AS counts`);
    return Number(rows[0].total);
  };
  return {
    place: { store: 'postgres', url },
    parts: 2 * CONNECTIONS + SLOTS,
    count: async () => ({
      queue: await count([
        'notifications.job',
        'notifications.job_log',
        'notifications.job_dependency',
        'notifications.dedup',
        'notifications.scheduler',
      ]),
      lanes: await count([`${PREFIX}session`, `${PREFIX}lane`, `${PREFIX}lease`]),
    }),
    close: async () => {
      await client.end();
      await stop();
    },
  };
}

async function openSqlite(): Promise<OpenPlace> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-memory-'));
  const file = join(folder, 'sessions.db');
  return {
    place: { store: 'sqlite', url: file },
    parts: 0,
    count: async () => {
      const database = new Database(file, { readonly: true });
      const counts = ['session', 'lane', 'lease'].map(
        (table) => database.prepare(`SELECT count(*) FROM "${PREFIX}${table}"`).pluck().get() as number,
      );
      database.close();
      return { queue: 0, lanes: counts.reduce((sum, each) => sum + each, 0) };
    },
    close: async () => rmSync(folder, { recursive: true, force: true }),
  };
}
