import { SessionsError } from '../common/sessions.error.js';

/** The principal has the maximum number of open streams in this process, see `maxStreamsPerPrincipal`. HTTP 429. */
export class TooManyStreamsError extends SessionsError {
  readonly code = 'TOO_MANY_STREAMS';
  /** An estimate in milliseconds. */
  readonly retryAfterMs = 1000;

  constructor(readonly maxStreams: number) {
    super(`Too many open streams. Allowed: ${maxStreams}. Close one, then reconnect.`);
  }
}

/** The body does not have the content type that the handler requires. HTTP 415. */
export class UnsupportedMediaTypeError extends SessionsError {
  readonly code = 'UNSUPPORTED_MEDIA_TYPE';

  constructor() {
    super('The body must be JSON with the content type application/json.');
  }
}

/** The chat has no open turn whose answer a front end could show (AIS-10). HTTP 204. */
export class NothingToResumeError extends SessionsError {
  readonly code = 'NOTHING_TO_RESUME';

  constructor() {
    super('The chat has no open turn.');
  }
}
