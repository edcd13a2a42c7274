/** The options of `typeormAdapter` with their defaults filled in, as the stores of the dialects take them. */
export interface SqlStoreOptions {
  readonly tablePrefix: string;
  readonly migrationsRun: boolean;
  readonly operationTimeoutMs: number;
  readonly synchronous: 'FULL' | 'NORMAL';
  readonly busyTimeoutMs: number;
}
