import { SessionsError } from '../common/sessions.error.js';

/** The body is of another type than the handler reads. HTTP 415. */
export class UnsupportedMediaTypeError extends SessionsError {
  readonly code = 'UNSUPPORTED_MEDIA_TYPE';

  constructor() {
    super('The body must be JSON, with the content type application/json.');
  }
}
