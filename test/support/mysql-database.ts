import { randomBytes } from 'node:crypto';
import { jest } from '@jest/globals';
import mysql2 from 'mysql2';
import { type AtomicSessionStoreAdapter } from 'nestjs-agent-sessions/adapter';
import { type DataSourceOptions } from 'typeorm';
import { corePorts } from '../../lib/store/core/core-ports.js';
import { MysqlDatabase } from '../../lib/store/mysql/mysql-database.js';
import { MYSQL_MIGRATIONS } from '../../lib/store/mysql/mysql-migrations.js';
import { MysqlPool } from '../../lib/store/mysql/mysql-pool.js';
import { type Answer, statement } from '../../lib/store/mysql/statement.js';
import { placeOf, type SqlPlace } from '../../lib/store/sql/sql-place.js';
import { runMigrations } from '../../lib/store/sql/run-migrations.js';

/** The store's ports over connections that the test can inspect. */
export interface OpenMysql {
  readonly ports: ReturnType<typeof corePorts>;
  readonly sessions: AtomicSessionStoreAdapter;
  readonly options: DataSourceOptions;
  readonly tablePrefix: string;
  readonly place: SqlPlace;
  /** Runs a statement on a connection of the store, with tables named as `{turn}`. */
  query(sql: string): Promise<Answer['rows']>;
  close(): Promise<void>;
}

/** Creates tables for the test, and opens them like the adapter. */
export async function openMysql(poolSize: number): Promise<OpenMysql> {
  const url = process.env.TEST_MYSQL_URL;
  if (url === undefined) throw new Error('TEST_MYSQL_URL is not set. See CONTRIBUTING.md.');
  const tablePrefix = `t${randomBytes(6).toString('hex')}_`;
  const options: DataSourceOptions = { type: 'mysql', url };
  await runMigrations(options, MYSQL_MIGRATIONS, tablePrefix);
  const place = placeOf(options, tablePrefix);
  const pool = await MysqlPool.open({ ...options, poolSize }, place, 10_000);
  const ports = corePorts(new MysqlDatabase(() => pool));
  return {
    ports,
    sessions: ports.sessions as AtomicSessionStoreAdapter,
    options,
    tablePrefix,
    place,
    query: async (sql) => (await pool.use(pool.deadline(), (connection) => connection.run([statement(sql)])))[0].rows,
    close: () => pool.close(),
  };
}

/**
 * Records the statements that connections send from now on, one string per round trip.
 * @param before runs before each round trip and delays it
 */
export function noteTrips(before?: (sql: string) => Promise<void>): string[] {
  const sent: string[] = [];
  const { prototype } = (mysql2 as unknown as { PoolConnection: { prototype: Sender } }).PoolConnection;
  const { query } = prototype;
  jest.spyOn(prototype, 'query').mockImplementation(function (this: Sender, options, ...rest) {
    sent.push(options.sql);
    if (!before) return query.call(this, options, ...rest);
    // query does not return a promise, so do not await its result.
    return void before(options.sql).then(() => void query.call(this, options, ...rest));
  });
  return sent;
}

interface Sender {
  query: (this: Sender, options: { sql: string }, ...rest: unknown[]) => unknown;
}
