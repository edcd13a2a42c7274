import { InvalidInputError } from '../common/sessions.error.js';
import { NothingToStreamError } from '../ledger/turn.errors.js';

/** The body does not have the content type that the handler requires. */
export function unsupportedMediaType(): InvalidInputError {
  const problem = 'must be JSON with the content type application/json.';
  return new InvalidInputError('body', problem, 'UNSUPPORTED_MEDIA_TYPE');
}

/** The client has closed the connection before the end of the body. */
export function incompleteBody(): InvalidInputError {
  return new InvalidInputError('body', 'must be complete. The client closed the connection before its end.');
}

/** The chat has no open turn whose answer a front end could show (AIS-10). */
export function nothingToResume(): NothingToStreamError {
  return new NothingToStreamError('NOTHING_TO_RESUME', 'The chat has no open turn. Load its messages instead.');
}

export function isNothingToResume(error: unknown): boolean {
  return error instanceof NothingToStreamError && error.code === 'NOTHING_TO_RESUME';
}
