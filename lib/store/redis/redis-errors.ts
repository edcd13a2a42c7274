import { SessionsError, StoreUnavailableError } from '../../common/sessions.error.js';
import { DeadlineError } from '../../common/deadline.js';

/** Error codes that Redis returns before it runs a script, so that nothing was written. */
const REFUSALS: ReadonlySet<string> = new Set([
  ...['OOM', 'MISCONF', 'READONLY', 'NOREPLICAS', 'MASTERDOWN', 'LOADING', 'BUSY'],
  ...['NOAUTH', 'NOPERM', 'NOSCRIPT'],
  ...['MOVED', 'ASK', 'TRYAGAIN', 'CLUSTERDOWN'],
]);

/** Returns the code of a Redis error, such as `OOM`, or '' if Redis did not answer. */
function codeOf(error: unknown): string {
  const isAnswer = error instanceof Error && error.name === 'ReplyError';
  return isAnswer ? (/^[A-Z]+(?= )/.exec(error.message)?.[0] ?? '') : '';
}

export function isUnknownScript(error: unknown): boolean {
  return codeOf(error) === 'NOSCRIPT';
}

/** Returns whether the user may not call the command, or the server does not have it. */
export function isForbidden(error: unknown): boolean {
  return codeOf(error) === 'NOPERM' || (error instanceof Error && error.message.startsWith('ERR unknown command'));
}

/** Returns whether the server is read-only. After a failover, a new connection may reach the primary. */
export function isReadOnly(error: unknown): boolean {
  return codeOf(error) === 'READONLY';
}

/**
 * Returns typed errors unchanged, and converts errors of Redis or its client to `StoreUnavailableError`.
 * @param writes whether a write was sent
 */
export function asStoreError(error: unknown, writes: boolean): SessionsError {
  if (error instanceof SessionsError) return error;
  const code = codeOf(error);
  // Messages with a code come from the server and contain no user data.
  const says = error instanceof Error && (error instanceof DeadlineError || code !== '');
  return new StoreUnavailableError(`The Redis store failed${says ? `: ${error.message}` : '.'}`, {
    cause: error,
    maybeApplied: writes && !REFUSALS.has(code),
  });
}
