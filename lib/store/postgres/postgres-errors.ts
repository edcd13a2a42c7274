import { SessionsError, StoreUnavailableError } from '../../common/sessions.error.js';
import { DeadlineError } from '../../common/deadline.js';

/** serialization_failure and deadlock_detected */
const ROLLED_BACK = new Set(['40001', '40P01']);
const READ_ONLY_SQL_TRANSACTION = '25006';
const LOCK_NOT_AVAILABLE = '55P03';

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
 * PostgreSQL has answered with an error, and not because it takes no writes at all just now (read-only, class 53: no disk,
 * no memory): what shared a statement may go well alone. Without an answer, more attempts only cost more.
 */
export function mayGoWellAlone(error: unknown): boolean {
  const { code, severity } = detailsOf(error);
  return severity === 'ERROR' && code !== READ_ONLY_SQL_TRANSACTION && !code.startsWith('53');
}

/**
 * Typed errors of the domain pass; whatever PostgreSQL or its driver says becomes "the store is unavailable".
 * @param commits whether a commit was sent: then only an error that PostgreSQL answers with says that nothing was written
 */
export function asStoreError(error: unknown, commits: boolean): SessionsError {
  if (error instanceof SessionsError) return error;
  const { code, severity } = detailsOf(error);
  const why = error instanceof DeadlineError ? `: ${error.message}` : code === '' ? '.' : ` (${code}).`;
  return new StoreUnavailableError(`The PostgreSQL store failed${why}`, {
    cause: error,
    // FATAL and PANIC end the connection, and can come after the commit. Severities may be translated: then it is not certain.
    maybeApplied: commits && severity !== 'ERROR',
  });
}

/** TypeORM wraps what the driver says, and so do we. */
function detailsOf(error: unknown): { readonly code: string; readonly severity: unknown } {
  const wrapped = error as { readonly driverError?: unknown; readonly cause?: unknown };
  const found = wrapped.driverError ?? (error instanceof StoreUnavailableError ? wrapped.cause : undefined);
  if (found !== undefined) return detailsOf(found);
  const { code, severity } = error as { code?: unknown; severity?: unknown };
  return { code: typeof code === 'string' ? code : '', severity };
}
