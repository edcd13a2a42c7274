import { inspect } from 'node:util';
import { type DataSource, type DataSourceOptions } from 'typeorm';
import { assertKnownKeys } from '../../common/known-keys.js';
import { SessionsConfigurationError } from '../../common/sessions.error.js';
import { type SqlStoreOptions } from '../sql/sql-store.options.js';

/** What `typeormAdapter` takes. */
export interface TypeormAdapterOptions {
  /**
   * The application's DataSource, which stays open when the adapter closes, or the options of one. Of `type`
   * `better-sqlite3` with the path of a file, `postgres`, `mysql` or `mariadb`.
   */
  readonly dataSource: DataSource | DataSourceOptions;
  /** Before the name of every table; letters, digits and underscores. Default `agent_`. */
  readonly tablePrefix?: string;
  /**
   * Runs the migrations at start, one process at a time. Default false: a schema that is behind stops the start. On SQLite
   * they always run (NST-23).
   */
  readonly migrationsRun?: boolean;
  /**
   * Milliseconds until an operation without an answer is rejected with `StoreUnavailableError`, its wait for a connection
   * included; the connection that did not answer is closed. Migrations take as long as they take. Default 5 000. Not for
   * SQLite, see `sqlite.busyTimeoutMs`.
   */
  readonly operationTimeoutMs?: number;
  /** Of a SQLite file only. Default: those of each option. */
  readonly sqlite?: {
    /**
     * `FULL` (default): a settled turn survives a power cut. `NORMAL`: it survives the process, but the last ones can be
     * lost when the machine goes down; faster.
     */
    readonly synchronous?: 'FULL' | 'NORMAL';
    /** Milliseconds to wait for another process's commit. Default 5000. */
    readonly busyTimeoutMs?: number;
  };
}

const SQLITE_KEYS = { synchronous: true, busyTimeoutMs: true } as const;

/** Of a timer in Node. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** @throws SessionsConfigurationError for an option that is not allowed */
export function resolveOptions(options: TypeormAdapterOptions): SqlStoreOptions {
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
