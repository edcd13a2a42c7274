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
 * Returns whether calls that shared a failed statement may succeed one by one. They may if PostgreSQL answered with an error
 * other than read-only or class 53 (no disk, no memory). Without an answer, further attempts only add load.
 */
export function mayGoWellAlone(error: unknown): boolean {
  const { code, severity } = detailsOf(error);
  return severity === 'ERROR' && code !== READ_ONLY_SQL_TRANSACTION && !code.startsWith('53');
}

/**
 * Returns typed errors unchanged, and converts errors of PostgreSQL or its driver to `StoreUnavailableError`.
 * @param commits whether a commit was sent. Then only an error answer from PostgreSQL proves that nothing was written
 */
export function asStoreError(error: unknown, commits: boolean): SessionsError {
  if (error instanceof SessionsError) return error;
  const { code, severity } = detailsOf(error);
  const why = error instanceof DeadlineError ? `: ${error.message}` : code === '' ? '.' : ` (${code}).`;
  return new StoreUnavailableError(`The PostgreSQL store failed${why}`, {
    cause: error,
    // FATAL and PANIC can follow the commit. A translated severity counts as unknown.
    maybeApplied: commits && severity !== 'ERROR',
  });
}

/** Finds the driver's error, which TypeORM and this store wrap. */
function detailsOf(error: unknown): { readonly code: string; readonly severity: unknown } {
  const wrapped = error as { readonly driverError?: unknown; readonly cause?: unknown };
  const found = wrapped.driverError ?? (error instanceof StoreUnavailableError ? wrapped.cause : undefined);
  if (found !== undefined) return detailsOf(found);
  const { code, severity } = error as { code?: unknown; severity?: unknown };
  return { code: typeof code === 'string' ? code : '', severity };
}
