import { type DataSource, type DataSourceOptions } from 'typeorm';

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

export interface ResolvedTypeormOptions {
  readonly tablePrefix: string;
  readonly migrationsRun: boolean;
  readonly operationTimeoutMs: number;
  readonly synchronous: 'FULL' | 'NORMAL';
  readonly busyTimeoutMs: number;
}
