import { type DataSourceOptions, type QueryRunner } from 'typeorm';
import { loadPeer } from '../../common/load-peer.js';
import { StoreUnavailableError } from '../../common/sessions.error.js';
import { newDataSource } from './new-data-source.js';
import { connect, withConnectTimeout } from './open-data-source.js';
import { type Migration, migrationClasses } from './migrations.js';
import { ownOptions } from './own-options.js';
import { sqlMessages } from './sql.messages.js';
import { placeOf } from './sql-place.js';

/** How long a process waits for another one that migrates a MySQL database. */
const LOCK_SECONDS = 600;

/**
 * Runs pending migrations on a separate DataSource with the application's connection options. If several processes start at
 * once, one migrates. The others wait and find nothing to do.
 * @param connectMs the timeout for the connection to a server. Does not limit the migrations, and does not apply to files
 */
export async function runMigrations(
  options: DataSourceOptions,
  migrations: readonly Migration[],
  tablePrefix: string,
  connectMs?: number,
): Promise<void> {
  const { MigrationExecutor } = await loadPeer('typeorm', () => import('typeorm'));
  const migrationsTableName = `${placeOf(options, tablePrefix).prefix}migrations`;
  const dataSource = await newDataSource({
    ...ownOptions(connectMs === undefined ? options : withConnectTimeout(options, connectMs)),
    migrations: migrationClasses(
      migrations.map(({ name }) => name),
      tablePrefix,
      () => migrations,
    ),
    migrationsTableName,
    logging: false,
  });
  if (connectMs === undefined) await dataSource.initialize();
  else await connect(dataSource, connectMs);
  const queryRunner = dataSource.createQueryRunner();
  try {
    await lock(queryRunner, migrationsTableName);
    const executor = new MigrationExecutor(dataSource, queryRunner);
    executor.transaction = 'each';
    await executor.executePendingMigrations();
    if (queryRunner.isTransactionActive) await queryRunner.commitTransaction();
  } finally {
    await queryRunner.release();
    await dataSource.destroy();
  }
}

/**
 * Takes a lock on the connection that also runs the migrations, until it ends: a waiting process may hold the last
 * connection of a pooler. In PostgreSQL, it is the lock of a transaction, which a pooler in transaction mode keeps on one
 * connection. The SQLite adapter has its own lock.
 */
async function lock(queryRunner: QueryRunner, name: string): Promise<void> {
  const { type } = queryRunner.connection.options;
  if (type === 'better-sqlite3') return;
  if (type !== 'postgres') {
    const sql = 'SELECT GET_LOCK(?, ?) AS held';
    const [{ held }] = (await queryRunner.query(sql, [name, LOCK_SECONDS])) as { held: unknown }[];
    if (Number(held) !== 1) throw new StoreUnavailableError(sqlMessages.migrationsLocked(LOCK_SECONDS));
    return;
  }
  // Reads the changes of the previous lock holder, instead of a snapshot from before the wait.
  await queryRunner.startTransaction('READ COMMITTED');
  await queryRunner.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [name]);
}
