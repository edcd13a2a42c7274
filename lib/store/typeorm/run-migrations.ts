import { type DataSource, type DataSourceOptions, type QueryRunner } from 'typeorm';
import { loadPeer } from '../../common/load-peer.js';
import { sessionsMigrations } from './migrations.js';

/**
 * Brings the schema up to date over a DataSource of its own, with the application's connection options. Of processes that
 * start at once one migrates, and the others wait for it and find nothing left to do.
 */
export async function runMigrations(options: DataSourceOptions, tablePrefix: string): Promise<void> {
  const { DataSource } = await loadPeer('typeorm', () => import('typeorm'));
  const dataSource = new DataSource({
    ...withTwoConnections(options),
    entities: [],
    subscribers: [],
    migrations: sessionsMigrations(tablePrefix),
    migrationsTableName: `${tablePrefix}migrations`,
    migrationsRun: false,
    synchronize: false,
    dropSchema: false,
    logging: false,
  });
  await dataSource.initialize();
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

/** Locks of a connection, which end with it. SQLite's adapter has a lock of its own. */
const LOCKS: { readonly [Type in DataSourceOptions['type']]?: readonly [lock: string, unlock: string] } = {
  postgres: ['SELECT pg_advisory_lock(hashtextextended($1, 0))', 'SELECT pg_advisory_unlock(hashtextextended($1, 0))'],
  mysql: ['SELECT GET_LOCK(?, 600)', 'SELECT RELEASE_LOCK(?)'],
  mariadb: ['SELECT GET_LOCK(?, 600)', 'SELECT RELEASE_LOCK(?)'],
};

async function withLock(dataSource: DataSource, name: string, work: () => Promise<unknown>): Promise<void> {
  const statements = LOCKS[dataSource.options.type];
  const holder: QueryRunner | undefined = statements && dataSource.createQueryRunner();
  try {
    await holder?.query(statements?.[0] ?? '', [name]);
    await work();
    await holder?.query(statements?.[1] ?? '', [name]);
  } finally {
    await holder?.release();
  }
}
