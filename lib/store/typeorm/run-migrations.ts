import { type DataSource, type DataSourceOptions, type QueryRunner } from 'typeorm';
import { loadPeer } from '../../common/load-peer.js';
import { connect, withConnectTimeout } from './open-data-source.js';
import { sessionsMigrations } from './migrations.js';

/**
 * Brings the schema up to date over a DataSource of its own, with the application's connection options. Of processes that
 * start at once one migrates, and the others wait for it and find nothing left to do.
 * @param connectMs how long a server may take to answer at first; the migrations may take longer. Not for a file.
 */
export async function runMigrations(
  options: DataSourceOptions,
  tablePrefix: string,
  connectMs?: number,
): Promise<void> {
  const { DataSource } = await loadPeer('typeorm', () => import('typeorm'));
  const dataSource = new DataSource({
    ...withTwoConnections(connectMs === undefined ? options : withConnectTimeout(options, connectMs)),
    entities: [],
    subscribers: [],
    migrations: sessionsMigrations(tablePrefix),
    migrationsTableName: `${tablePrefix}migrations`,
    migrationsRun: false,
    synchronize: false,
    dropSchema: false,
    logging: false,
  });
  if (connectMs === undefined) await dataSource.initialize();
  else await connect(dataSource, connectMs);
  try {
    await withLock(dataSource, `${tablePrefix}migrations`, () => dataSource.runMigrations({ transaction: 'each' }));
  } finally {
    await dataSource.destroy();
  }
}

/** One holds the lock, the other one migrates. */
function withTwoConnections(options: DataSourceOptions): DataSourceOptions {
  return options.type === 'better-sqlite3' ? options : ({ ...options, poolSize: 2 } as DataSourceOptions);
}

/**
 * They end with their connection, PostgreSQL's with its transaction: a pooler in transaction mode keeps that on one
 * connection. SQLite's adapter has a lock of its own.
 */
const LOCKS: { readonly [Type in DataSourceOptions['type']]?: string } = {
  postgres: 'SELECT pg_advisory_xact_lock(hashtextextended($1, 0))',
  mysql: 'SELECT GET_LOCK(?, 600)',
  mariadb: 'SELECT GET_LOCK(?, 600)',
};

async function withLock(dataSource: DataSource, name: string, work: () => Promise<unknown>): Promise<void> {
  const lock = LOCKS[dataSource.options.type];
  const holder: QueryRunner | undefined = lock === undefined ? undefined : dataSource.createQueryRunner();
  try {
    await holder?.startTransaction();
    await holder?.query(lock ?? '', [name]);
    await work();
    await holder?.commitTransaction();
  } finally {
    await holder?.release();
  }
}
