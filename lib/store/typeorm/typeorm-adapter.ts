import { inspect } from 'node:util';
import { type DataSource, type DataSourceOptions } from 'typeorm';
import { SessionsConfigurationError } from '../../common/sessions.error.js';
import { type SessionsAdapter } from '../../sessions.adapter.js';
import { SqliteAdapter } from './sqlite/sqlite-adapter.js';
import { type ResolvedTypeormOptions, type TypeormAdapterOptions } from './typeorm-adapter.options.js';

/**
 * A store in a database that TypeORM reaches. Today: SQLite files through better-sqlite3.
 *
 * ```ts
 * typeormAdapter({ dataSource: { type: 'better-sqlite3', database: 'sessions.db' } })
 * ```
 * @throws SessionsConfigurationError for another dialect, `:memory:`, or an option that is not allowed
 */
export function typeormAdapter(options: TypeormAdapterOptions): SessionsAdapter {
  const dataSource = connectionOptions(options);
  if (dataSource.type !== 'better-sqlite3') {
    throw new SessionsConfigurationError(
      `typeormAdapter: dataSource.type is ${JSON.stringify(dataSource.type)}; it must be 'better-sqlite3'.`,
    );
  }
  return SqliteAdapter.create(dataSource, resolveOptions(options));
}

function connectionOptions({ dataSource }: TypeormAdapterOptions): DataSourceOptions {
  const options = (dataSource as Partial<DataSource> | undefined)?.options ?? dataSource;
  if (typeof options !== 'object' || options === null) {
    throw new SessionsConfigurationError(
      'typeormAdapter: dataSource is missing; give a TypeORM DataSource or its options.',
    );
  }
  return options as DataSourceOptions;
}

function resolveOptions({ tablePrefix = 'agent_', sqlite = {} }: TypeormAdapterOptions): ResolvedTypeormOptions {
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
  return { tablePrefix, synchronous, busyTimeoutMs };
}
