import { SessionsError, StoreUnavailableError } from '../../common/sessions.error.js';

export function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}

/** A typed error as it is; anything else as StoreUnavailableError. */
export function asStoreError(error: unknown): SessionsError {
  if (error instanceof SessionsError) return error;
  return new StoreUnavailableError('The Redis store did not carry out the operation.', { cause: error });
}
