import { type DataSource, type DataSourceOptions } from 'typeorm';
import { assertKnownKeys } from '../../common/check-options.js';
import { assertUrlIsSet } from '../../common/server-place.js';
import { SessionsConfigurationError } from '../../common/sessions.error.js';
import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { dialectOf } from '../sql/dialects.js';
import { MysqlAdapter } from '../mysql/mysql-adapter.js';
import { assertHonoured } from '../sql/data-source-options.js';
import { isDataSource, optionsOf } from '../sql/open-data-source.js';
import { type SqlStoreOptions } from '../sql/sql-store.options.js';
import { PostgresAdapter } from '../postgres/postgres-adapter.js';
import { SqliteAdapter } from '../sqlite/sqlite-adapter.js';
import { assertEntityNames } from './entity-names.js';
import { resolveOptions, type TypeormAdapterOptions } from './typeorm-adapter.options.js';

/**
 * Creates a store that uses TypeORM with a SQLite file (better-sqlite3), PostgreSQL, MySQL or MariaDB.
 *
 * ```ts
 * typeormAdapter({ dataSource: { type: 'better-sqlite3', database: 'sessions.db' } })
 * typeormAdapter({ dataSource }) // the application's DataSource
 * ```
 * @throws SessionsConfigurationError for another dialect, `:memory:`, or an invalid option
 */
export function typeormAdapter(options: TypeormAdapterOptions): SessionsAdapter {
  if (isDataSource((options ?? {}) as object as DataSourceOptions)) {
    throw new SessionsConfigurationError(
      'typeormAdapter: Pass the DataSource as an option: typeormAdapter({ dataSource }).',
    );
  }
  assertKnownKeys(options, KEYS, 'typeormAdapter: ');
  const { dataSource } = options;
  if (typeof dataSource !== 'object' || dataSource === null) {
    throw new SessionsConfigurationError(
      'typeormAdapter: dataSource is missing. Pass a TypeORM DataSource or its options.',
    );
  }
  const connection = optionsOf(dataSource);
  dialectOf(connection);
  assertUrlIsSet(dataSource, 'typeormAdapter: dataSource.');
  assertHonoured(connection, isDataSource(dataSource) && dataSource.isInitialized);
  const resolved = resolveOptions(options);
  const adapter = create(dataSource, resolved);
  if (!isDataSource(dataSource)) return adapter;
  return {
    ...adapter,
    init: async (limits) => {
      await adapter.init?.(limits);
      try {
        assertEntityNames(dataSource, resolved.tablePrefix);
      } catch (error) {
        await adapter.close?.();
        throw error;
      }
    },
  };
}

function create(dataSource: DataSource | DataSourceOptions, options: SqlStoreOptions): SessionsAdapter {
  const connection = optionsOf(dataSource);
  if (connection.type === 'postgres') return PostgresAdapter.create(dataSource, options);
  if (connection.type === 'better-sqlite3') return SqliteAdapter.create(connection, options);
  return MysqlAdapter.create(dataSource, options);
}

const KEYS = {
  dataSource: true,
  tablePrefix: true,
  migrationsRun: true,
  operationTimeoutMs: true,
  checkServer: true,
  sqlite: true,
} as const;
