import { SessionsError, StoreUnavailableError } from '../../common/sessions.error.js';
import { DeadlineError } from '../deadline.js';

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

/** Typed errors of the domain pass; whatever Redis or its client says becomes "the store is unavailable". */
export function asStoreError(error: unknown): SessionsError {
  if (error instanceof SessionsError) return error;
  // What has a code is a text of the server's, without anybody's data.
  const says = error instanceof Error && (error instanceof DeadlineError || codeOf(error) !== '');
  return new StoreUnavailableError(`The Redis store failed${says ? `: ${error.message}` : '.'}`, { cause: error });
}
