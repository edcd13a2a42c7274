import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import { DataSource } from 'typeorm';
import { FAST_PLACE } from './fast-place.js';
import { PrivateRedis } from './private-redis.js';
import { SQL_SERVERS, type SqlServer } from './servers.js';
import { sqliteAdapter } from './stores.js';
import { temporaryFolder } from './temporary-folder.js';

/** What the stores below refuse in a step, a message and an error. */
export const FORBIDDEN = 'forbidden '.repeat(120_000);

export interface ForbiddingStore {
  readonly adapter: SessionsAdapter;
  readonly stop: () => Promise<void>;
}

const COLUMNS = [
  ['step', 'value'],
  ['message', 'body'],
  ['turn', 'error'],
] as const;

/** Stores that refuse {@link FORBIDDEN}, and the code that they answer with. */
export const FORBIDDING_STORES: readonly {
  readonly name: string;
  readonly code: string;
  readonly open: () => Promise<ForbiddingStore>;
}[] = [
  { name: 'sqlite', code: 'SQLITE_CONSTRAINT_TRIGGER', open: forbiddingSqlite },
  ...SQL_SERVERS.map((server) => ({
    name: server.name,
    code: server.type === 'postgres' ? '23514' : '4025',
    open: () => forbiddingServer(server),
  })),
  { name: 'redis', code: 'proto-max-bulk-len', open: forbiddingRedis },
];

async function forbiddingSqlite(): Promise<ForbiddingStore> {
  const file = join(temporaryFolder(FAST_PLACE), 'sessions.db');
  const adapter = sqliteAdapter(file);
  await adapter.init?.();
  const db = new Database(file);
  for (const [table, column] of COLUMNS) {
    const refuse = `WHEN instr(NEW.${column}, 'forbidden') BEGIN SELECT RAISE(ABORT, 'no'); END`;
    db.exec(`CREATE TRIGGER no_${table} BEFORE INSERT ON agent_${table} ${refuse}`);
    db.exec(`CREATE TRIGGER nor_${table} BEFORE UPDATE ON agent_${table} ${refuse}`);
  }
  db.close();
  return { adapter, stop: async () => adapter.close?.() };
}

async function forbiddingServer({ type, url }: SqlServer): Promise<ForbiddingStore> {
  const tablePrefix = `f${randomBytes(5).toString('hex')}_`;
  const adapter = typeormAdapter({ dataSource: { type, url }, tablePrefix, migrationsRun: true });
  await adapter.init?.();
  const server = await new DataSource({ type, url }).initialize();
  for (const [table, column] of COLUMNS) {
    const check = `CHECK (${column} NOT LIKE '%forbidden%')`;
    await server.query(`ALTER TABLE ${tablePrefix}${table} ADD CONSTRAINT ${tablePrefix}no_${table} ${check}`);
  }
  await server.destroy();
  return { adapter, stop: async () => adapter.close?.() };
}

/** The smallest limit that Redis allows is 1 MB. */
async function forbiddingRedis(): Promise<ForbiddingStore> {
  const redis = await PrivateRedis.start('--proto-max-bulk-len', '1mb');
  const adapter = redis.store();
  // Without the limits of an application, the start does not check the limit of the server.
  await adapter.init?.();
  return {
    adapter,
    stop: async () => {
      await adapter.close?.();
      await redis.stop();
    },
  };
}
