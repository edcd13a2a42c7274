import { HttpStatus } from '@nestjs/common';

/** The body of a domain error, in every transport (NST-15). */
export interface SessionsErrorBody {
  /** The HTTP status, in every transport. */
  readonly statusCode: number;
  readonly code: string;
  readonly message: string;
  readonly sessionId?: string;
  readonly turnId?: string;
  /** Seconds to wait before a retry. */
  readonly retryAfter?: number;
}

/** The part of a SessionsError that this file reads. The class cannot be imported, because it imports this file. */
interface CodedError extends Error {
  readonly code: string;
  getStatus(): number;
}

/** Generic messages for codes whose own messages may contain internals. */
const GENERIC: Readonly<Record<string, string>> = {
  STORE_UNAVAILABLE: 'The store is unavailable. Retry later.',
};

export function toErrorBody(error: CodedError): SessionsErrorBody {
  const { sessionId, turnId, retryAfterMs } = error as { sessionId?: string; turnId?: string; retryAfterMs?: number };
  const retryMs = error.code === 'STORE_UNAVAILABLE' ? 1000 : retryAfterMs;
  return {
    statusCode: error.getStatus(),
    code: error.code,
    message: isApplicationFault(error) ? 'Internal server error' : (GENERIC[error.code] ?? error.message),
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(turnId === undefined ? {} : { turnId }),
    ...(retryMs === undefined ? {} : { retryAfter: Math.max(1, Math.ceil(retryMs / 1000)) }),
  };
}

/**
 * Returns whether the error is a fault of the application, whose details are hidden from clients. A failed turn does not
 * count: its worker logs it.
 */
export function isApplicationFault(error: Pick<CodedError, 'code' | 'getStatus'>): boolean {
  return error.getStatus() === Number(HttpStatus.INTERNAL_SERVER_ERROR) && error.code !== 'TURN_FAILED';
}
