import { SessionsError, StoreUnavailableError } from '../../../common/sessions.error.js';

/** What MySQL or its driver says, told apart from what a work throws. */
export class MysqlFailure extends Error {
  readonly errno: number | undefined;
  readonly code: string | undefined;

  constructor(cause: unknown) {
    super('MySQL failed.', { cause });
    const { errno, code } = cause as { errno?: unknown; code?: unknown };
    this.errno = typeof errno === 'number' ? errno : undefined;
    this.code = typeof code === 'string' ? code : undefined;
  }
}

/**
 * Deadlock, lock wait time-out, and a row that another caller made first (or, in MariaDB, changed since it was read): the
 * transaction is rolled back, and run again it sees what that one did.
 */
const IN_EACH_OTHERS_WAY = new Set([1213, 1205, 1062, 1020]);

export function isConflict(error: unknown): boolean {
  return error instanceof MysqlFailure && error.errno !== undefined && IN_EACH_OTHERS_WAY.has(error.errno);
}

/** Typed errors of the domain pass; whatever MySQL or its driver says becomes "the store is unavailable". */
export function asStoreError(error: unknown): unknown {
  if (error instanceof SessionsError || !(error instanceof MysqlFailure)) return error;
  const { code, cause } = error;
  return new StoreUnavailableError(`The MySQL store failed${code === undefined ? '' : ` (${code})`}.`, { cause });
}
