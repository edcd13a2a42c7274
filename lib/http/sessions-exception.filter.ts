import { type ArgumentsHost, Catch, type ExceptionFilter, HttpStatus, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { SessionsError, StoreUnavailableError } from '../common/sessions.error.js';
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

const STATUS_BY_CODE: Readonly<Record<string, HttpStatus>> = {
  TURN_EVENTS_ENDED: HttpStatus.NO_CONTENT,
  INVALID_INPUT: HttpStatus.BAD_REQUEST,
  STATE_NOT_SERIALIZABLE: HttpStatus.BAD_REQUEST,
  TOO_LARGE: HttpStatus.PAYLOAD_TOO_LARGE,
  SESSION_ID_MISSING: HttpStatus.BAD_REQUEST,
  UNAUTHENTICATED: HttpStatus.UNAUTHORIZED,
  SESSION_NOT_FOUND: HttpStatus.NOT_FOUND,
  TURN_NOT_FOUND: HttpStatus.NOT_FOUND,
  SESSION_CONFLICT: HttpStatus.CONFLICT,
  SESSION_STATE: HttpStatus.CONFLICT,
  SURFACE_LIMIT: HttpStatus.CONFLICT,
  SURFACE_CONFLICT: HttpStatus.CONFLICT,
  CHECKPOINT_CONFLICT: HttpStatus.CONFLICT,
  CHECKPOINT_NOT_FOUND: HttpStatus.NOT_FOUND,
  CHECKPOINT_PRUNED: HttpStatus.GONE,
  NOTHING_TO_UNDO: HttpStatus.CONFLICT,
  SESSION_NOT_EMPTY: HttpStatus.CONFLICT,
  SESSION_BUSY: HttpStatus.CONFLICT,
  TURN_SETTLED: HttpStatus.CONFLICT,
  TURN_CANCELLED: HttpStatus.CONFLICT,
  TURN_SUPERSEDED: HttpStatus.CONFLICT,
  TURN_REENTRY: HttpStatus.CONFLICT,
  ORCHESTRATOR_DRIFT: HttpStatus.CONFLICT,
  IDEMPOTENCY_CONFLICT: HttpStatus.UNPROCESSABLE_ENTITY,
  COMPACTION_BUSY: HttpStatus.CONFLICT,
  COMPACTION_FAILED: HttpStatus.BAD_GATEWAY,
  TOOL_NOT_ALLOWED: HttpStatus.FORBIDDEN,
  UNKNOWN_STEP: HttpStatus.BAD_REQUEST,
  STATE_CONFLICT: HttpStatus.CONFLICT,
  TOKEN_BUDGET_EXCEEDED: HttpStatus.TOO_MANY_REQUESTS,
  LANE_FULL: HttpStatus.TOO_MANY_REQUESTS,
  LANE_DRAINING: HttpStatus.SERVICE_UNAVAILABLE,
  TURN_FAILED: HttpStatus.INTERNAL_SERVER_ERROR,
  STORE_UNAVAILABLE: HttpStatus.SERVICE_UNAVAILABLE,
  SHUTTING_DOWN: HttpStatus.SERVICE_UNAVAILABLE,
  TURN_WAIT_TIMEOUT: HttpStatus.GATEWAY_TIMEOUT,
};

/** Codes whose messages may name what clients must not see. */
const GENERIC: Readonly<Record<string, string>> = {
  STORE_UNAVAILABLE: 'The store is not available at the moment. Try again.',
};

/** The HTTP status of a domain error; 500 for those that are mistakes of the application. */
export function statusOf(error: SessionsError): HttpStatus {
  if (error instanceof SessionStateError && error.currentState === 'expired') return HttpStatus.GONE;
  return STATUS_BY_CODE[error.code] ?? HttpStatus.INTERNAL_SERVER_ERROR;
}

/** Answers domain errors over HTTP with a stable body: no stack, no store internals. forRoot installs it. */
@Catch(SessionsError)
export class SessionsExceptionFilter implements ExceptionFilter<SessionsError> {
  private readonly logger = new Logger(SessionsExceptionFilter.name);

  constructor(private readonly adapterHost: HttpAdapterHost) {}

  catch(error: SessionsError, host: ArgumentsHost): void {
    // Other transports have filters of their own.
    if (host.getType() !== 'http') throw error;
    const response = host.switchToHttp().getResponse<object>();
    const { httpAdapter } = this.adapterHost;
    const body = toErrorBody(error);
    // The client is told nothing of it, so somebody else must be.
    if (isApplicationFault(error)) this.logger.error(error.stack);
    if (body.statusCode === Number(HttpStatus.NO_CONTENT)) {
      httpAdapter.reply(response, undefined, body.statusCode);
      return;
    }
    if (body.retryAfter !== undefined) httpAdapter.setHeader(response, 'Retry-After', String(body.retryAfter));
    const { accept } = host.switchToHttp().getRequest<{ headers: { accept?: string } }>().headers;
    if (accept?.includes('application/problem+json')) {
      httpAdapter.setHeader(response, 'Content-Type', 'application/problem+json');
      httpAdapter.reply(response, toProblem(body), body.statusCode);
    } else {
      httpAdapter.reply(response, body, body.statusCode);
    }
  }
}

export function toErrorBody(error: SessionsError): SessionsErrorBody {
  const { sessionId, turnId, retryAfterMs } = error as { sessionId?: string; turnId?: string; retryAfterMs?: number };
  const statusCode = statusOf(error);
  const retryMs = error instanceof StoreUnavailableError ? 1000 : retryAfterMs;
  return {
    statusCode,
    code: error.code,
    message: isApplicationFault(error) ? 'Internal server error' : (GENERIC[error.code] ?? error.message),
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(turnId === undefined ? {} : { turnId }),
    ...(retryMs === undefined ? {} : { retryAfter: Math.max(1, Math.ceil(retryMs / 1000)) }),
  };
}

/** A mistake of the application, which is none of the client's business. A failed turn is not: its worker logs it. */
function isApplicationFault(error: SessionsError): boolean {
  return statusOf(error) === HttpStatus.INTERNAL_SERVER_ERROR && error.code !== 'TURN_FAILED';
}

/** RFC 9457, for clients that ask for it. */
function toProblem({ statusCode, message, ...rest }: SessionsErrorBody): object {
  return { type: 'about:blank', title: rest.code, status: statusCode, detail: message, ...rest };
}
