import { type DataSource, type DataSourceOptions } from 'typeorm';
import { SessionsError, StoreUnavailableError } from '../../common/sessions.error.js';
import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { corePorts } from '../core/core-ports.js';
import { notOpen } from '../core/store-failure.js';
import { assertSchema, pendingMigrations, type StoredVersion } from '../sql/assert-schema.js';
import { optionsOf } from '../sql/open-data-source.js';
import { runMigrations } from '../sql/run-migrations.js';
import { asStartError } from '../sql/start-checks.js';
import { serverLabel } from '../sql/dialects.js';
import { placeOf, type SqlPlace } from '../sql/sql-place.js';
import { type SqlStoreOptions } from '../sql/sql-store.options.js';
import { MysqlDatabase } from './mysql-database.js';
import { asStoreError, MysqlFailure } from './mysql-errors.js';
import { MYSQL_MIGRATIONS } from './mysql-migrations.js';
import { MysqlPool } from './mysql-pool.js';
import { checkMysqlSettings, probeMysql } from './mysql-start.js';
import { statement } from './statement.js';

/** The store in MySQL 8 or MariaDB 10.6 and later, for any number of processes. */
export class MysqlAdapter {
  private readonly place: SqlPlace;
  private pool: MysqlPool | null = null;

  private constructor(
    private readonly connection: DataSourceOptions,
    private readonly options: SqlStoreOptions,
  ) {
    this.place = placeOf(connection, options.tablePrefix);
  }

  /** @param dataSource the application's DataSource, or options. Only its options are used; the adapter opens its own connections */
  static create(dataSource: DataSource | DataSourceOptions, options: SqlStoreOptions): SessionsAdapter {
    const adapter = new MysqlAdapter(optionsOf(dataSource), options);
    const database = new MysqlDatabase(() => adapter.opened());
    return {
      ...corePorts(database),
      shared: true,
      system: adapter.place.dialect.system,
      label: adapter.label,
      init: (limits) => adapter.init(limits?.maxValueBytes),
      ping: async () => {
        await database.read((tx) => tx.now);
      },
      probe: () => adapter.probe(),
      pendingMigrations: () =>
        asTypedErrors(() =>
          pendingMigrations((sql) => adapter.query(adapter.opened(), sql), adapter.place, MYSQL_MIGRATIONS),
        ),
      close: () => adapter.close(),
    };
  }

  private get label(): string {
    return serverLabel(this.place.dialect, this.connection);
  }

  private async init(maxValueBytes = 0): Promise<void> {
    if (this.pool) return;
    const { tablePrefix, migrationsRun, operationTimeoutMs, checkServer } = this.options;
    try {
      if (migrationsRun) {
        await asFailures(() => runMigrations(this.connection, MYSQL_MIGRATIONS, tablePrefix, operationTimeoutMs));
      }
      const pool = await MysqlPool.open(this.connection, this.place, operationTimeoutMs);
      this.pool = pool;
      await assertSchema((sql) => this.query(pool, sql), this.place, MYSQL_MIGRATIONS);
      if (!checkServer) return;
      await checkMysqlSettings(pool, this.place.prefix, maxValueBytes);
      await probeMysql(pool);
    } catch (error) {
      await this.close();
      const known = asStartError(asStoreError(error));
      if (known instanceof SessionsError) throw known;
      // Also applies to the connections that run migrations.
      throw new StoreUnavailableError(
        `The ${this.place.dialect.title} store could not be opened. Check the server, and see the cause.`,
        { cause: error },
      );
    }
  }

  private probe(): Promise<void> {
    return asTypedErrors(() => probeMysql(this.opened()));
  }

  private async close(): Promise<void> {
    const { pool } = this;
    this.pool = null;
    await pool?.close();
  }

  private async query(pool: MysqlPool, sql: string): Promise<StoredVersion[]> {
    const [{ rows }] = await pool.use(pool.deadline(), (connection) => connection.run([statement(sql)]));
    return rows as unknown as StoredVersion[];
  }

  private opened(): MysqlPool {
    if (!this.pool) throw notOpen(`${this.place.dialect.title} store`);
    return this.pool;
  }
}

/** @throws StoreUnavailableError, or another typed error, for an error of MySQL */
async function asTypedErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw asStoreError(error);
  }
}

/** Converts an error that TypeORM has wrapped, so that a lacking privilege ends the start instead of being retried. */
async function asFailures(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const { driverError } = error as { readonly driverError?: unknown };
    throw driverError === undefined ? error : new MysqlFailure(driverError, false);
  }
}
