import { SessionsError } from '../../common/sessions.error.js';
import { DeadlineError } from '../../common/deadline.js';
import { type FailureKind, kinds, storeError } from '../core/store-failure.js';

/** A statement is larger than `max_allowed_packet`. It was not sent, because the server would close the connection. */
export class PacketTooLargeError extends Error {
  readonly errno = 1153;
  readonly code = 'ER_NET_PACKET_TOO_LARGE';

  constructor(bytes: number, maxBytes: number) {
    super(`A statement of ${bytes} bytes is larger than max_allowed_packet (${maxBytes}).`);
  }
}

/** An error of MySQL or its driver, as opposed to an error that the work throws. */
export class MysqlFailure extends Error {
  readonly errno: number | undefined;
  readonly code: string | undefined;
  readonly sqlState: string;
  /** Whether the answer to a commit was lost. */
  readonly maybeApplied: boolean;

  /** @param commits whether a commit was sent. Then only an error answer from MySQL proves that nothing was written */
  constructor(cause: unknown, commits: boolean) {
    super('MySQL failed.', { cause });
    const { errno, code, sqlState } = cause as { errno?: unknown; code?: unknown; sqlState?: unknown };
    this.errno = typeof errno === 'number' ? errno : undefined;
    this.code = typeof code === 'string' ? code : undefined;
    this.sqlState = typeof sqlState === 'string' ? sqlState : '';
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
const READ_ONLY = [1290, 1792, 1836];

/**
 * A deadlock, a lock wait timeout, or a row that another caller created first (or, in MariaDB, changed since the read). The
 * transaction is rolled back. When it runs again, it sees the other caller's changes.
 */
const CONFLICTS = new Set([1213, 1205, 1062, 1020]);

/** How error numbers of MySQL and MariaDB are handled (FIX-61). A number that is not listed is handled by its SQLSTATE. */
const KINDS: Readonly<Record<number, FailureKind>> = {
  ...kinds('outage', ...READ_ONLY),
  // A conflict, after all repetitions. ER_DUP_ENTRY is a value.
  ...kinds('outage', 1213, 1205, 1020),
  // Disk and memory: EE_WRITE, ER_DISK_FULL, read, write, engine, memory, ER_RECORD_FILE_FULL, ER_LOCK_TABLE_FULL
  ...kinds('outage', 3, 1021, 1024, 1026, 1030, 1037, 1038, 1041, 1114, 1206, 1637),
  // Limits of connections: ER_CON_COUNT_ERROR, ER_HOST_IS_BLOCKED, ER_TOO_MANY_USER_CONNECTIONS, ER_USER_LIMIT_REACHED
  ...kinds('outage', 1040, 1129, 1203, 1226),
  // Shutdown and killed: also ER_QUERY_INTERRUPTED, ER_QUERY_TIMEOUT, ER_SERVER_OFFLINE_MODE, ER_CLIENT_INTERACTION_TIMEOUT,
  // and in MariaDB ER_CONNECTION_KILLED, ER_STATEMENT_TIMEOUT
  ...kinds('outage', 1053, 1077, 1078, 1079, 1080, 1180, 1317, 1927, 1969, 3024, 3032, 3101, 3168, 4031),
  // A node of Galera that is not ready, FLUSH TABLES WITH READ LOCK, a changed table or statement
  ...kinds('outage', 1047, 1223, 1243, 1412, 1461, 1615),
  // Columns: null, out of range, truncated, wrong, too long, division by zero, characters, JSON
  ...kinds('value', 1048, 1264, 1265, 1292, 1300, 1365, 1366, 1406, 1411, 1690, 3140, 3141, 3854, 3988),
  // Sizes: ER_TOO_BIG_ROWSIZE, ER_NET_PACKET_TOO_LARGE, ER_TOO_LONG_STRING, ER_WARN_ALLOWED_PACKET_OVERFLOWED
  ...kinds('value', 1118, 1153, 1162, 1301),
  // Constraints: ER_DUP_ENTRY, foreign keys, checks of MySQL and MariaDB
  ...kinds('value', 1062, 1451, 1452, 3819, 4025),
  // Access: to the database, the server, tables, columns, and routines
  ...kinds('deployment', 1044, 1045, 1130, 1142, 1143, 1227, 1370, 1698, 1820, 1862, 3118, 3955),
  // Another schema: ER_NO_DB_ERROR, ER_BAD_DB_ERROR, ER_BAD_FIELD_ERROR, ER_PARSE_ERROR, column counts, tables, routines
  ...kinds('deployment', 1046, 1049, 1054, 1064, 1136, 1146, 1305, 1364),
};

/** How classes of SQLSTATEs are handled. */
const KINDS_OF_STATES: Readonly<Record<string, FailureKind>> = {
  ...kinds('outage', '08', '40', '70'),
  ...kinds('value', '22', '23'),
};

/** Advice for errors that server settings cause. */
const CURES: Readonly<Record<number, string>> = {
  1153: 'A value does not fit in one packet: raise max_allowed_packet of the server, 64 MB is plenty.',
  1142: 'Grant the user the privileges that docs/stores/mysql.md lists.',
  1146: 'Run the migrations with this tablePrefix, see docs/stores/migrations.md.',
  1366: 'Create the tables with the migrations of this package, which use utf8mb4.',
};

/**
 * After these errors, a connection is not reused. Its next answer could belong to another statement, or never arrive. After a
 * failover, a new connection may reach the primary.
 */
export function endsConnection(error: unknown): boolean {
  const { fatal, errno } = error as { fatal?: boolean; errno?: number };
  return fatal === true || (errno !== undefined && READ_ONLY.includes(errno)) || error instanceof DeadlineError;
}

export function isConflict(error: unknown): boolean {
  return error instanceof MysqlFailure && error.errno !== undefined && CONFLICTS.has(error.errno);
}

/** Returns typed errors unchanged, and converts errors of MySQL or its driver to the typed error for their kind. */
export function asStoreError(error: unknown): unknown {
  if (error instanceof SessionsError || !(error instanceof MysqlFailure)) return error;
  const { cause, maybeApplied, errno = 0 } = error;
  const kind = kindOf(error);
  return storeError({ store: 'MySQL', kind, detail: detailOf(error, kind), cure: CURES[errno], cause, maybeApplied });
}

function kindOf({ errno, sqlState }: MysqlFailure): FailureKind {
  if (!isAnswer(errno)) return 'outage';
  return KINDS[errno] ?? KINDS_OF_STATES[sqlState.slice(0, 2)] ?? 'unknown';
}

function detailOf({ code, errno, cause }: MysqlFailure, kind: FailureKind): string {
  if (cause instanceof DeadlineError) return `: ${cause.message.replace(/\.$/, '')}`;
  // The driver has the names of MySQL, which uses some numbers of MariaDB for other errors.
  const name = isAnswer(errno) ? `${errno} ${code ?? ''}`.trim() : code;
  // These messages contain only names of users and tables. Messages about values may contain the value.
  const names = kind === 'deployment' && cause instanceof Error ? `: ${cause.message}` : '';
  return name === undefined ? '' : ` (${name})${names}`;
}
