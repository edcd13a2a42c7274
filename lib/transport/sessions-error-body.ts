import { HttpStatus } from '@nestjs/common';
import { isFaultCode, statusOfCode } from '../common/error-status.js';
import { type SessionsError } from '../common/sessions.error.js';
import { SessionStateError } from '../ledger/session.errors.js';

/** What a client gets for a domain error, whatever the transport (NST-15). */
export interface SessionsErrorBody {
  /** An HTTP status, in every transport. */
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
function statusOf(error: SessionsError): HttpStatus {
  if (error instanceof SessionStateError && error.currentState === 'expired') return HttpStatus.GONE;
  return statusOfCode(error.code);
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
