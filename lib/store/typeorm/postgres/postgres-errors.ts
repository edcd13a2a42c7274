import { SessionsError, StoreUnavailableError } from '../../../common/sessions.error.js';

/** serialization_failure and deadlock_detected */
const ROLLED_BACK = new Set(['40001', '40P01']);

export function isSerializationFailure(error: unknown): boolean {
  return ROLLED_BACK.has(codeOf(error));
}

/** Typed errors of the domain pass; whatever PostgreSQL or its driver says becomes "the store is unavailable". */
export function asStoreError(error: unknown): SessionsError {
  if (error instanceof SessionsError) return error;
  const code = codeOf(error);
  return new StoreUnavailableError(`The PostgreSQL store failed${code === '' ? '' : ` (${code})`}.`, { cause: error });
}

function codeOf(error: unknown): string {
  const { code, driverError } = error as { code?: unknown; driverError?: { code?: unknown } };
  const found = driverError?.code ?? code;
  return typeof found === 'string' ? found : '';
}
