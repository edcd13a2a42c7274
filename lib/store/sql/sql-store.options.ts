/** The options of `typeormAdapter` with defaults applied, for the stores of all dialects. */
export interface SqlStoreOptions {
  readonly tablePrefix: string;
  readonly migrationsRun: boolean;
  readonly operationTimeoutMs: number;
  readonly checkServer: boolean;
  readonly synchronous: 'FULL' | 'NORMAL';
  readonly busyTimeoutMs: number;
}
