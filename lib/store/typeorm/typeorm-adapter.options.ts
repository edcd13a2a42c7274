import { inspect } from 'node:util';
import { type DataSource, type DataSourceOptions } from 'typeorm';
import { assertKnownKeys } from '../../common/check-options.js';
import { type Loose } from '../../common/patch.js';
import { SessionsConfigurationError } from '../../common/sessions.error.js';
import { type SqlStoreOptions } from '../sql/sql-store.options.js';
import { typeormMessages } from './typeorm.messages.js';

/** The options of `typeormAdapter`. */
export interface TypeormAdapterOptions {
  /**
   * The application's DataSource, or the options to create one. The adapter closes only a DataSource that it opened. The
   * `type` must be `better-sqlite3` with a file path, `postgres`, `mysql` or `mariadb`.
   */
  readonly dataSource: DataSource | Loose<DataSourceOptions>;
  /**
   * The prefix of every table name, after the DataSource's `entityPrefix`. Letters, digits and underscores, together at most
   * 31 characters. Default `agent_`.
   */
  readonly tablePrefix?: string;
  /**
   * Whether to run pending migrations at startup, one process at a time. Default false: startup fails if the schema is
   * outdated. On SQLite, migrations always run (NST-23).
   */
  readonly migrationsRun?: boolean;
  /**
   * The timeout of an operation in milliseconds, including the wait for a connection. After it, the operation is rejected
   * with `StoreUnavailableError` and its connection is closed. Migrations have no timeout. Default 5 000. SQLite ignores
   * this option; see `sqlite.busyTimeoutMs`.
   */
  readonly operationTimeoutMs?: number;
  /**
   * Whether to check at startup the encodings and limits of the server, and the privileges on tables and functions, with statements
   * that change nothing (FIX-65). `false` is for users that may not read the catalogues of the server. Default true.
   */
  readonly checkServer?: boolean;
  /** Options for SQLite only. Default: the defaults of its properties. */
  readonly sqlite?: {
    /**
     * `FULL` (default): settled turns survive a power cut. `NORMAL` is faster: settled turns survive a process crash, but
     * a crash of the machine can lose the latest ones.
     */
    readonly synchronous?: 'FULL' | 'NORMAL';
    /** The time to wait for another process's commit, in milliseconds. Default 5 000. */
    readonly busyTimeoutMs?: number;
  };
}

const SQLITE_KEYS = { synchronous: true, busyTimeoutMs: true } as const;

/** The longest delay of a Node timer. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** @throws SessionsConfigurationError for an option that is not allowed */
export function resolveOptions(options: TypeormAdapterOptions): SqlStoreOptions {
  const {
    tablePrefix = 'agent_',
    migrationsRun = false,
    operationTimeoutMs = 5_000,
    checkServer = true,
    sqlite = {},
  } = options;
  assertKnownKeys(sqlite, SQLITE_KEYS, 'typeormAdapter: sqlite.');
  const { synchronous = 'FULL', busyTimeoutMs = 5000 } = sqlite;
  // The prefix is inserted into SQL.
  if (!/^[A-Za-z_]\w{0,30}$/.test(tablePrefix)) {
    throw new SessionsConfigurationError(typeormMessages.wrongTablePrefix(tablePrefix));
  }
  if (synchronous !== 'FULL' && synchronous !== 'NORMAL') {
    throw new SessionsConfigurationError(typeormMessages.wrongSynchronous(synchronous));
  }
  if (!Number.isFinite(busyTimeoutMs) || busyTimeoutMs < 0) {
    throw new SessionsConfigurationError(typeormMessages.wrongBusyTimeout(inspect(busyTimeoutMs)));
  }
  for (const [name, value] of Object.entries({ migrationsRun, checkServer })) {
    if (typeof value === 'boolean') continue;
    throw new SessionsConfigurationError(typeormMessages.notABoolean(name, inspect(value)));
  }
  if (!(Number.isFinite(operationTimeoutMs) && operationTimeoutMs >= 1 && operationTimeoutMs <= LONGEST_TIMEOUT_MS)) {
    throw new SessionsConfigurationError(
      typeormMessages.wrongOperationTimeout(LONGEST_TIMEOUT_MS, inspect(operationTimeoutMs)),
    );
  }
  return { tablePrefix, migrationsRun, operationTimeoutMs, checkServer, synchronous, busyTimeoutMs };
}
