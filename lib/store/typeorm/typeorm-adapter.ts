import { inspect } from 'node:util';
import { assertKnownKeys } from '../../common/known-keys.js';
import { assertUrlIsSet } from '../../common/server-place.js';
import { SessionsConfigurationError } from '../../common/sessions.error.js';
import { type SessionsAdapter } from '../../sessions.adapter.js';
import { dialectOf } from './dialects.js';
import { MysqlAdapter } from './mysql/mysql-adapter.js';
import { optionsOf } from './open-data-source.js';
import { PostgresAdapter } from './postgres/postgres-adapter.js';
import { SqliteAdapter } from './sqlite/sqlite-adapter.js';
import { type ResolvedTypeormOptions, type TypeormAdapterOptions } from './typeorm-adapter.options.js';

/**
 * A store in a database that TypeORM reaches: a SQLite file (better-sqlite3), PostgreSQL, MySQL or MariaDB.
 *
 * ```ts
 * typeormAdapter({ dataSource: { type: 'better-sqlite3', database: 'sessions.db' } })
 * typeormAdapter({ dataSource }) // the application's own
 * ```
 * @throws SessionsConfigurationError for another dialect, `:memory:`, or an option that is not allowed
 */
export function typeormAdapter(options: TypeormAdapterOptions): SessionsAdapter {
  assertKnownKeys(options, KEYS, 'typeormAdapter: ');
  const { dataSource } = options;
  if (typeof dataSource !== 'object' || dataSource === null) {
    throw new SessionsConfigurationError(
      'typeormAdapter: dataSource is missing; give a TypeORM DataSource or its options.',
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
  sqlite: true,
} as const;
const SQLITE_KEYS = { synchronous: true, busyTimeoutMs: true } as const;

/** Of a timer in Node. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

function resolveOptions(options: TypeormAdapterOptions): ResolvedTypeormOptions {
  const { tablePrefix = 'agent_', migrationsRun = false, operationTimeoutMs = 5_000, sqlite = {} } = options;
  assertKnownKeys(sqlite, SQLITE_KEYS, 'typeormAdapter: sqlite.');
  const { synchronous = 'FULL', busyTimeoutMs = 5000 } = sqlite;
  // The prefix becomes part of SQL.
  if (!/^[A-Za-z_]\w{0,30}$/.test(tablePrefix)) {
    throw new SessionsConfigurationError(
      `typeormAdapter: tablePrefix is ${JSON.stringify(tablePrefix)}; it must be letters, digits and underscores, at most 31.`,
    );
  }
  if (synchronous !== 'FULL' && synchronous !== 'NORMAL') {
    throw new SessionsConfigurationError(
      `typeormAdapter: sqlite.synchronous is ${JSON.stringify(synchronous)}; it must be 'FULL' or 'NORMAL'.`,
    );
  }
  if (!Number.isFinite(busyTimeoutMs) || busyTimeoutMs < 0) {
    throw new SessionsConfigurationError(
      `typeormAdapter: sqlite.busyTimeoutMs is ${inspect(busyTimeoutMs)}; it must be a number of milliseconds, 0 or more.`,
    );
  }
  if (typeof migrationsRun !== 'boolean') {
    throw new SessionsConfigurationError(
      `typeormAdapter: migrationsRun is ${inspect(migrationsRun)}; it must be true or false.`,
    );
  }
  if (!(Number.isFinite(operationTimeoutMs) && operationTimeoutMs >= 1 && operationTimeoutMs <= LONGEST_TIMEOUT_MS)) {
    throw new SessionsConfigurationError(
      `typeormAdapter: operationTimeoutMs is ${inspect(operationTimeoutMs)}; it must be a number of milliseconds, 1 to ${LONGEST_TIMEOUT_MS}.`,
    );
  }
  return { tablePrefix, migrationsRun, operationTimeoutMs, synchronous, busyTimeoutMs };
}
