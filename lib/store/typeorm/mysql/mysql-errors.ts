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

/** What to do about errors that the server's settings bring about. */
const CURES: Readonly<Record<string, string>> = {
  ER_NET_PACKET_TOO_LARGE:
    ' A value does not fit in one packet: raise max_allowed_packet of the server, 64 MB is plenty.',
};

/** Typed errors of the domain pass; whatever MySQL or its driver says becomes "the store is unavailable". */
export function asStoreError(error: unknown): unknown {
  if (error instanceof SessionsError || !(error instanceof MysqlFailure)) return error;
  const { code, cause } = error;
  const named = code === undefined ? '' : ` (${code})`;
  return new StoreUnavailableError(`The MySQL store failed${named}.${CURES[code ?? ''] ?? ''}`, { cause });
}
