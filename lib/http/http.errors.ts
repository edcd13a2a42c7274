import { SessionsError } from '../common/sessions.error.js';

/** The principal has as many streams open in this process as `maxStreamsPerPrincipal` allows. HTTP 429. */
export class TooManyStreamsError extends SessionsError {
  readonly code = 'TOO_MANY_STREAMS';

  constructor(readonly maxStreams: number) {
    super(`At most ${maxStreams} streams may be open at a time. Close one of them, then connect again.`);
  }
}

/** The body is of another type than the handler reads. HTTP 415. */
export class UnsupportedMediaTypeError extends SessionsError {
  readonly code = 'UNSUPPORTED_MEDIA_TYPE';

  constructor() {
    super('The body must be JSON, with the content type application/json.');
  }
}
