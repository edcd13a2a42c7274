import { type DataSource, type DataSourceOptions } from 'typeorm';

export interface TypeormAdapterOptions {
  /** The application's DataSource, or the options of one. `type: 'better-sqlite3'` with the path of a file. */
  readonly dataSource: DataSource | DataSourceOptions;
  /** Before the name of every table; letters, digits and underscores. Default `agent_`. */
  readonly tablePrefix?: string;
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
  readonly synchronous: 'FULL' | 'NORMAL';
  readonly busyTimeoutMs: number;
}
