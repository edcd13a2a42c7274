import { readFileSync } from 'node:fs';
import { connect, Socket } from 'node:net';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { Redis } from 'ioredis';
import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { redisAdapter } from 'nestjs-agent-sessions/redis';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import { countSocket, traffic } from './counted-sockets.js';
import { type StoreName } from './stores.js';

/** Sizes in a write-ahead log of SQLite: of its header, and of a page's header. */
const LOG_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const PREFIX = 'bench_counted_';

/** A store whose round trips are counted. */
export interface CountedStore {
  readonly adapter: SessionsAdapter;
  /** The counted quantity. */
  readonly unit: 'round trips' | 'transactions';
  /** The maximum per operation (PRF-05). */
  readonly allowed: number;
  /** Returns the count so far. */
  count(): number;
  close(): Promise<void>;
}

const OPENERS: Readonly<Partial<Record<StoreName, (address: string) => CountedStore>>> = {
  redis: openRedis,
  postgres: openPostgres,
  mariadb: openMariadb,
  sqlite: openSqlite,
};

/** @param address the URL of the server, or the folder */
export async function openCounted(store: StoreName, address: string): Promise<CountedStore> {
  const open = OPENERS[store];
  if (!open) throw new Error(`Nothing of ${store} can be counted.`);
  const counted = open(address);
  await counted.adapter.init?.();
  return counted;
}

function openRedis(url: string): CountedStore {
  const client = new Redis(url, { maxRetriesPerRequest: 0 });
  client.once('connect', () => countSocket(client.stream));
  const counted = overSockets(redisAdapter({ client, keyPrefix: PREFIX }));
  return {
    ...counted,
    close: async () => {
      await counted.close();
      client.disconnect();
    },
  };
}

function openPostgres(url: string): CountedStore {
  const extra = { stream: () => countSocket(new Socket()) };
  const dataSource = { type: 'postgres', url, extra } as const;
  return overSockets(typeormAdapter({ dataSource, tablePrefix: PREFIX, migrationsRun: true }));
}

function openMariadb(url: string): CountedStore {
  const { hostname, port } = new URL(url);
  const extra = { stream: () => countSocket(connect(Number(port), hostname)) };
  const dataSource = { type: 'mariadb', url, extra } as const;
  return overSockets(typeormAdapter({ dataSource, tablePrefix: PREFIX, migrationsRun: true }), 8);
}

function overSockets(adapter: SessionsAdapter, allowed = 1): CountedStore {
  return {
    adapter,
    unit: 'round trips',
    allowed,
    count: () => traffic().roundTrips,
    close: async () => adapter.close?.(),
  };
}

/** SQLite has no connection, so its transactions are counted. */
function openSqlite(folder: string): CountedStore {
  const file = join(folder, 'counted.db');
  const adapter = typeormAdapter({ dataSource: { type: 'better-sqlite3', database: file } });
  let beside: Database.Database | null = null;
  let before = 0;
  return {
    adapter,
    unit: 'transactions',
    allowed: 1,
    count: () => {
      beside ??= new Database(file);
      before += transactionsIn(readFileSync(`${file}-wal`));
      // Write the log to the file, so that the log starts empty.
      beside.pragma('wal_checkpoint(TRUNCATE)');
      return before;
    },
    close: async () => {
      beside?.close();
      await adapter.close?.();
    },
  };
}

/** Counts commits: the last page of each contains the size of the file in its header, other pages contain 0. */
function transactionsIn(log: Buffer): number {
  if (log.length === 0) return 0;
  const frame = FRAME_HEADER_BYTES + log.readUInt32BE(8);
  let count = 0;
  for (let at = LOG_HEADER_BYTES; at + frame <= log.length; at += frame) if (log.readUInt32BE(at + 4) !== 0) count += 1;
  return count;
}
