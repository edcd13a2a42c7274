import { assertKnownKeys } from '../../common/check-options.js';
import { assertUrlIsSet } from '../../common/server-place.js';
import { SessionsConfigurationError } from '../../common/sessions.error.js';
import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { dialectOf } from '../sql/dialects.js';
import { MysqlAdapter } from '../mysql/mysql-adapter.js';
import { optionsOf } from '../sql/open-data-source.js';
import { PostgresAdapter } from '../postgres/postgres-adapter.js';
import { SqliteAdapter } from '../sqlite/sqlite-adapter.js';
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
  const resolved = resolveOptions(options);
  if (connection.type === 'postgres') return PostgresAdapter.create(dataSource, resolved);
  if (connection.type === 'better-sqlite3') return SqliteAdapter.create(connection, resolved);
  return MysqlAdapter.create(dataSource, resolved);
}

const KEYS = {
  dataSource: true,
  tablePrefix: true,
  migrationsRun: true,
  operationTimeoutMs: true,
  checkServer: true,
  sqlite: true,
} as const;
