import { SessionsError, StoreUnavailableError } from '../../common/sessions.error.js';
import { DeadlineError } from '../../common/deadline.js';

/** What MySQL or its driver says, told apart from what a work throws. */
export class MysqlFailure extends Error {
  readonly errno: number | undefined;
  readonly code: string | undefined;
  /** The answer to a commit was lost. */
  readonly maybeApplied: boolean;

  /** @param commits whether a commit was sent: then only an error that MySQL answers with says that nothing was written */
  constructor(cause: unknown, commits: boolean) {
    super('MySQL failed.', { cause });
    const { errno, code } = cause as { errno?: unknown; code?: unknown };
    this.errno = typeof errno === 'number' ? errno : undefined;
    this.code = typeof code === 'string' ? code : undefined;
    this.maybeApplied = commits && !(isAnswer(this.errno) && !UNCERTAIN.has(this.errno));
  }
}

/** Errors of the operating system have a negative number, those of the driver none. */
function isAnswer(errno: number | undefined): errno is number {
  return errno !== undefined && errno > 0;
}

/** ER_SERVER_SHUTDOWN, ER_ERROR_DURING_COMMIT, ER_CONNECTION_KILLED */
const UNCERTAIN = new Set([1053, 1180, 1927]);

/** ER_OPTION_PREVENTS_STATEMENT (as `read_only` does), ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, ER_READ_ONLY_MODE */
const READ_ONLY = new Set<unknown>([1290, 1792, 1836]);

/**
 * After these a connection is not used again: the next answer could be that of another statement, or none; and after a
 * fail-over another connection may lead to the server that takes writes.
 */
export function endsConnection(error: unknown): boolean {
  const { fatal, errno } = error as { fatal?: boolean; errno?: number };
  return fatal === true || READ_ONLY.has(errno) || error instanceof DeadlineError;
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
  const { code, cause, maybeApplied } = error;
  const why = cause instanceof DeadlineError ? `: ${cause.message}` : code === undefined ? '.' : ` (${code}).`;
  return new StoreUnavailableError(`The MySQL store failed${why}${CURES[code ?? ''] ?? ''}`, { cause, maybeApplied });
}
