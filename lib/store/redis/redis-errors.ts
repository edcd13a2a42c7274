import { SessionsError, StoreUnavailableError } from '../../common/sessions.error.js';
import { DeadlineError } from '../../common/deadline.js';

/** Redis answers with these before it begins with a script. */
const REFUSALS: ReadonlySet<string> = new Set([
  ...['OOM', 'MISCONF', 'READONLY', 'NOREPLICAS', 'MASTERDOWN', 'LOADING', 'BUSY'],
  ...['NOAUTH', 'NOPERM', 'NOSCRIPT'],
  ...['MOVED', 'ASK', 'TRYAGAIN', 'CLUSTERDOWN'],
]);

/** As in `OOM command not allowed ...`; '' when Redis did not answer. */
function codeOf(error: unknown): string {
  const isAnswer = error instanceof Error && error.name === 'ReplyError';
  return isAnswer ? (/^[A-Z]+(?= )/.exec(error.message)?.[0] ?? '') : '';
}

export function isUnknownScript(error: unknown): boolean {
  return codeOf(error) === 'NOSCRIPT';
}

/** The user may not, or the server does not have the command. */
export function isForbidden(error: unknown): boolean {
  return codeOf(error) === 'NOPERM' || (error instanceof Error && error.message.startsWith('ERR unknown command'));
}

/** Whether another connection may lead to the server that takes writes now. */
export function isReadOnly(error: unknown): boolean {
  return codeOf(error) === 'READONLY';
}

/**
 * Typed errors of the domain pass; whatever Redis or its client says becomes "the store is unavailable".
 * @param writes whether something that writes was sent
 */
export function asStoreError(error: unknown, writes: boolean): SessionsError {
  if (error instanceof SessionsError) return error;
  const code = codeOf(error);
  // What has a code is a text of the server's, without anybody's data.
  const says = error instanceof Error && (error instanceof DeadlineError || code !== '');
  return new StoreUnavailableError(`The Redis store failed${says ? `: ${error.message}` : '.'}`, {
    cause: error,
    maybeApplied: writes && !REFUSALS.has(code),
  });
}
