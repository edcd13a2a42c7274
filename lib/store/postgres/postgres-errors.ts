import { SessionsError } from '../../common/sessions.error.js';
import { DeadlineError } from '../../common/deadline.js';
import { type FailureKind, kinds, storeError } from '../core/store-failure.js';

/** serialization_failure and deadlock_detected */
const ROLLED_BACK = new Set(['40001', '40P01']);
const READ_ONLY_SQL_TRANSACTION = '25006';
const LOCK_NOT_AVAILABLE = '55P03';

const SQLSTATE = /^[0-9A-Z]{5}$/;
/** The severities that end a connection. */
const ENDS: ReadonlySet<unknown> = new Set(['FATAL', 'PANIC']);
/** Connection exception, timeouts of sessions, insufficient resources, operator intervention, system and internal errors */
const OFTEN_FATAL = ['08', '25P', '53', '57', '58', 'XX'];

/**
 * How SQLSTATEs are handled (FIX-61). An entry is a code, or a class of codes. A code has precedence over its class. The
 * statements of this package never change, so that a class such as "syntax error" means another schema.
 */
const KINDS: Readonly<Record<string, FailureKind>> = {
  // Connection exception, transaction rollback, insufficient resources, operator intervention, system error
  ...kinds('outage', '08', '40', '53', '57', '58'),
  // Read-only transaction, failed transaction, three timeouts of sessions, lock_not_available
  ...kinds('outage', READ_ONLY_SQL_TRANSACTION, '25P02', '25P03', '25P04', LOCK_NOT_AVAILABLE),
  // A pooler has changed the connection: invalid_sql_statement_name, duplicate_prepared_statement
  ...kinds('outage', '26000', '42P05'),
  // Data exception, integrity constraint violation, program limit exceeded
  ...kinds('value', '22', '23', '54'),
  // Invalid authorization, invalid catalog, invalid schema, "syntax error or access rule violation"
  ...kinds('deployment', '28', '3D', '3F', '42'),
};

const CURES: Readonly<Record<string, string>> = {
  // Untranslatable and invalid characters
  '22P05': 'Use values without NUL characters, and a database whose encoding is UTF8.',
  '22021': 'Use values without NUL characters, and a database whose encoding is UTF8.',
  '42501': 'Grant the role the privileges that docs/stores/postgresql.md lists.',
  '42P01': 'Run the migrations with this tablePrefix and schema, see docs/stores/migrations.md.',
  '42883': 'Run the migrations with this tablePrefix and schema, see docs/stores/migrations.md.',
};

export function isSerializationFailure(error: unknown): boolean {
  return ROLLED_BACK.has(detailsOf(error).code);
}

export function isLockTimeout(error: unknown): boolean {
  return detailsOf(error).code === LOCK_NOT_AVAILABLE;
}

export function isReadOnly(error: unknown): boolean {
  return detailsOf(error).code === READ_ONLY_SQL_TRANSACTION;
}

/**
 * Returns whether calls that shared a failed statement may succeed one by one. They may if PostgreSQL answered with an error
 * other than read-only or class 53 (no disk, no memory). Without an answer, further attempts only add load.
 */
export function maySucceedAlone(error: unknown): boolean {
  const details = detailsOf(error);
  const { code } = details;
  return isRolledBack(details) && code !== READ_ONLY_SQL_TRANSACTION && !code.startsWith('53');
}

/**
 * Returns typed errors unchanged, and converts errors of PostgreSQL or its driver to the typed error for their kind.
 * @param commits whether a commit was sent. Then only an error answer from PostgreSQL proves that nothing was written
 */
export function asStoreError(error: unknown, commits: boolean): SessionsError {
  if (error instanceof SessionsError) return error;
  const details = detailsOf(error);
  return storeError({
    store: 'PostgreSQL',
    kind: kindOf(details),
    detail: detailOf(error, details),
    cure: CURES[details.code],
    cause: error,
    maybeApplied: commits && !isRolledBack(details),
  });
}

interface Details {
  /** The SQLSTATE, or the code of the driver. Empty if the error is without a code. */
  readonly code: string;
  /** Absent if PostgreSQL did not answer. In the language of `lc_messages`: the driver does not pass the other one. */
  readonly severity: unknown;
  readonly message: string;
}

/**
 * Returns whether PostgreSQL answered that the statement failed and was rolled back. FATAL and PANIC can follow the commit. If
 * the severity is translated, codes that are also used with FATAL count as such.
 */
function isRolledBack({ code, severity }: Details): boolean {
  if (severity === 'ERROR') return true;
  if (typeof severity !== 'string' || ENDS.has(severity)) return false;
  return SQLSTATE.test(code) && !OFTEN_FATAL.some((start) => code.startsWith(start));
}

function kindOf({ code, severity, message }: Details): FailureKind {
  if (typeof severity !== 'string') return 'outage';
  // This message has the general code feature_not_supported. The next call plans the statement again.
  if (message.includes('cached plan must not change result type')) return 'outage';
  const known = KINDS[code] ?? KINDS[code.slice(0, 2)];
  if (known) return known;
  // FATAL and PANIC end the connection.
  return ENDS.has(severity) ? 'outage' : 'unknown';
}

function detailOf(error: unknown, details: Details): string {
  if (error instanceof DeadlineError) return `: ${error.message.replace(/\.$/, '')}`;
  const { code, message } = details;
  // These messages contain only names of tables and functions. Messages about values may contain the value.
  const names = kindOf(details) === 'deployment' ? `: ${message}` : '';
  return code === '' ? '' : ` (${code})${names}`;
}

/** Finds the driver's error, which TypeORM and this store wrap. */
function detailsOf(error: unknown): Details {
  const wrapped = error as { readonly driverError?: unknown; readonly cause?: unknown };
  const found = wrapped.driverError ?? (error instanceof SessionsError ? wrapped.cause : undefined);
  if (found !== undefined) return detailsOf(found);
  const { code, severity, message } = error as { code?: unknown; severity?: unknown; message?: unknown };
  return { code: typeof code === 'string' ? code : '', severity, message: String(message) };
}
