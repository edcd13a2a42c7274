import { HttpException, HttpStatus } from '@nestjs/common';
import { SessionsError } from '../../common/sessions.error.js';
import { isApplicationFault, type SessionsErrorBody, toErrorBody } from '../../common/sessions-error-body.js';
import { httpMessages } from '../http.messages.js';

/** Codes for errors of guards, parsers and the framework. */
const CODE_BY_STATUS: Readonly<Record<number, string>> = {
  [HttpStatus.BAD_REQUEST]: 'INVALID_INPUT',
  [HttpStatus.UNAUTHORIZED]: 'UNAUTHENTICATED',
  [HttpStatus.FORBIDDEN]: 'FORBIDDEN',
  [HttpStatus.PAYLOAD_TOO_LARGE]: 'TOO_LARGE',
  [HttpStatus.UNSUPPORTED_MEDIA_TYPE]: 'UNSUPPORTED_MEDIA_TYPE',
  [HttpStatus.TOO_MANY_REQUESTS]: 'TOO_MANY_REQUESTS',
};

/** The body for internal errors. */
const INTERNAL: SessionsErrorBody = {
  statusCode: HttpStatus.INTERNAL_SERVER_ERROR,
  code: 'INTERNAL',
  message: 'Internal server error',
};

/** Returns whether the error is a fault of the application and must be logged. */
export function isFault(error: unknown): boolean {
  return SessionsError.isInstance(error) ? isApplicationFault(error) : foreignStatus(error) >= 500;
}

/** Converts any error to the response body of this package's controllers. */
export function toAnyErrorBody(error: unknown): SessionsErrorBody {
  if (SessionsError.isInstance(error)) return toErrorBody(error);
  const statusCode = foreignStatus(error);
  if (statusCode >= 500) return { ...INTERNAL, statusCode };
  const code = CODE_BY_STATUS[statusCode] ?? 'REFUSED';
  return { statusCode, code, message: messageOf(error, statusCode) };
}

/** Returns the status of an error that is not of this package, for example of a guard or a body parser. Default 500. */
function foreignStatus(error: unknown): number {
  if (error instanceof HttpException) return error.getStatus();
  const { status, statusCode = status } = (error ?? {}) as { status?: unknown; statusCode?: unknown };
  const known = Number.isInteger(statusCode) && (statusCode as number) >= 400 && (statusCode as number) < 600;
  return known ? (statusCode as number) : HttpStatus.INTERNAL_SERVER_ERROR;
}

/**
 * Returns the public message. The message of a guard is meant for the client; that of a parser may contain the body.
 */
function messageOf(error: unknown, statusCode: number): string {
  return error instanceof HttpException ? error.message : (PARSER_MESSAGES[statusCode] ?? 'The request was rejected.');
}

const PARSER_MESSAGES: Readonly<Record<number, string>> = {
  [HttpStatus.BAD_REQUEST]: 'The body must be JSON.',
  [HttpStatus.PAYLOAD_TOO_LARGE]: httpMessages.bodyTooLarge(),
  [HttpStatus.UNSUPPORTED_MEDIA_TYPE]: 'The body must be JSON with the content type application/json.',
};
