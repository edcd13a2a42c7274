import { type ArgumentsHost, Catch, type ExceptionFilter, HttpStatus, Logger } from '@nestjs/common';
import { type AbstractHttpAdapter, HttpAdapterHost } from '@nestjs/core';
import { isFaultCode, statusOfCode } from '../common/error-status.js';
import { SessionsError } from '../common/sessions.error.js';
import { SessionStateError } from '../session/session.errors.js';

/** What a client gets for a domain error (NST-15). */
export interface SessionsErrorBody {
  readonly statusCode: number;
  readonly code: string;
  readonly message: string;
  readonly sessionId?: string;
  readonly turnId?: string;
  /** Seconds. */
  readonly retryAfter?: number;
}

/** Codes whose messages may name what clients must not see. */
const GENERIC: Readonly<Record<string, string>> = {
  STORE_UNAVAILABLE: 'The store is not available at the moment. Try again.',
};

/** The HTTP status of a domain error; 500 for those that are mistakes of the application. */
export function statusOf(error: SessionsError): HttpStatus {
  if (error instanceof SessionStateError && error.currentState === 'expired') return HttpStatus.GONE;
  return statusOfCode(error.code);
}

/** Answers domain errors over HTTP with a stable body: no stack, no store internals. forRoot installs it. */
@Catch(SessionsError)
export class SessionsExceptionFilter implements ExceptionFilter<SessionsError> {
  private readonly logger = new Logger(SessionsExceptionFilter.name);

  constructor(private readonly adapterHost: HttpAdapterHost) {}

  catch(error: SessionsError, host: ArgumentsHost): void {
    // Other transports have filters of their own.
    if (host.getType() !== 'http') throw error;
    // The client is told nothing of it, so somebody else must be.
    if (isApplicationFault(error)) this.logger.error(error.stack);
    const http = host.switchToHttp();
    replyError(this.adapterHost.httpAdapter, http.getRequest(), http.getResponse(), toErrorBody(error));
  }
}

/** Answers in the form that the client asks for, unless it was answered already: by a time limit, for one. */
export function replyError(
  httpAdapter: AbstractHttpAdapter,
  { headers }: { readonly headers: { readonly accept?: string } },
  response: object,
  body: SessionsErrorBody,
): void {
  if (httpAdapter.isHeadersSent(response)) return;
  if (body.statusCode === Number(HttpStatus.NO_CONTENT)) {
    httpAdapter.reply(response, undefined, body.statusCode);
    return;
  }
  if (body.retryAfter !== undefined) httpAdapter.setHeader(response, 'Retry-After', String(body.retryAfter));
  if (headers.accept?.includes('application/problem+json')) {
    httpAdapter.setHeader(response, 'Content-Type', 'application/problem+json');
    httpAdapter.reply(response, toProblem(body), body.statusCode);
  } else {
    httpAdapter.reply(response, body, body.statusCode);
  }
}

export function toErrorBody(error: SessionsError): SessionsErrorBody {
  const { sessionId, turnId, retryAfterMs } = error as { sessionId?: string; turnId?: string; retryAfterMs?: number };
  const statusCode = statusOf(error);
  const retryMs = error.code === 'STORE_UNAVAILABLE' ? 1000 : retryAfterMs;
  return {
    statusCode,
    code: error.code,
    message: isApplicationFault(error) ? 'Internal server error' : (GENERIC[error.code] ?? error.message),
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(turnId === undefined ? {} : { turnId }),
    ...(retryMs === undefined ? {} : { retryAfter: Math.max(1, Math.ceil(retryMs / 1000)) }),
  };
}

/** A mistake of the application, which is none of the client's business. */
export function isApplicationFault(error: SessionsError): boolean {
  return isFaultCode(error.code);
}

/** RFC 9457, for clients that ask for it. */
function toProblem({ statusCode, message, ...rest }: SessionsErrorBody): object {
  return { type: 'about:blank', title: rest.code, status: statusCode, detail: message, ...rest };
}
