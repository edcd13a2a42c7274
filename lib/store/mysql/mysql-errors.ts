import { SessionsError, StoreUnavailableError } from '../../common/sessions.error.js';
import { DeadlineError } from '../../common/deadline.js';

/** An error of MySQL or its driver, as opposed to an error that the work throws. */
export class MysqlFailure extends Error {
  readonly errno: number | undefined;
  readonly code: string | undefined;
  /** Whether the answer to a commit was lost. */
  readonly maybeApplied: boolean;

  /** @param commits whether a commit was sent. Then only an error answer from MySQL proves that nothing was written */
  constructor(cause: unknown, commits: boolean) {
    super('MySQL failed.', { cause });
    const { errno, code } = cause as { errno?: unknown; code?: unknown };
    this.errno = typeof errno === 'number' ? errno : undefined;
    this.code = typeof code === 'string' ? code : undefined;
    this.maybeApplied = commits && !(isAnswer(this.errno) && !UNCERTAIN.has(this.errno));
  }
}

/** Operating system errors have a negative number, and driver errors have none. */
function isAnswer(errno: number | undefined): errno is number {
  return errno !== undefined && errno > 0;
}

/** ER_SERVER_SHUTDOWN, ER_ERROR_DURING_COMMIT, ER_CONNECTION_KILLED */
const UNCERTAIN = new Set([1053, 1180, 1927]);

/** ER_OPTION_PREVENTS_STATEMENT (as `read_only` does), ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, ER_READ_ONLY_MODE */
const READ_ONLY = new Set<unknown>([1290, 1792, 1836]);

/**
 * After these errors, a connection is not reused. Its next answer could belong to another statement, or never arrive. After a
 * failover, a new connection may reach the primary.
 */
export function endsConnection(error: unknown): boolean {
  const { fatal, errno } = error as { fatal?: boolean; errno?: number };
  return fatal === true || READ_ONLY.has(errno) || error instanceof DeadlineError;
}

/**
 * A deadlock, a lock wait timeout, or a row that another caller created first (or, in MariaDB, changed since the read). The
 * transaction is rolled back. When it runs again, it sees the other caller's changes.
 */
const IN_EACH_OTHERS_WAY = new Set([1213, 1205, 1062, 1020]);

export function isConflict(error: unknown): boolean {
  return error instanceof MysqlFailure && error.errno !== undefined && IN_EACH_OTHERS_WAY.has(error.errno);
}

/** Advice for errors that server settings cause. */
const CURES: Readonly<Record<string, string>> = {
  ER_NET_PACKET_TOO_LARGE:
    ' A value does not fit in one packet: raise max_allowed_packet of the server, 64 MB is plenty.',
};

/** Returns typed errors unchanged, and converts errors of MySQL or its driver to `StoreUnavailableError`. */
export function asStoreError(error: unknown): unknown {
  if (error instanceof SessionsError || !(error instanceof MysqlFailure)) return error;
  const { code, cause, maybeApplied } = error;
  const why = cause instanceof DeadlineError ? `: ${cause.message}` : code === undefined ? '.' : ` (${code}).`;
  return new StoreUnavailableError(`The MySQL store failed${why}${CURES[code ?? ''] ?? ''}`, { cause, maybeApplied });
}
