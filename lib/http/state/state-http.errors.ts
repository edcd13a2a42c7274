import { HttpStatus } from '@nestjs/common';
import { statusOfCode } from '../../common/error-status.js';
import { SessionsError } from '../../common/sessions.error.js';
import { STATE_MODULES } from '../../state/state-module.js';
import { type StateOperationResult, type StateStoreError } from '../../state/state-report.js';
import { type SessionsErrorBody, toErrorBody } from '../../common/sessions-error-body.js';
import { toAnyErrorBody } from '../controllers/error-body.js';

/**
 * The control plane rejects a request. Nothing was read or done.
 *
 * - `FORBIDDEN`: the principal lacks a permission (STA-25). HTTP 403,
 * - `IDEMPOTENCY_CONFLICT`: the Idempotency-Key was already used for another request (STA-27). HTTP 422,
 * - `REQUEST_IN_PROGRESS`: the request with this Idempotency-Key is in progress, or its process crashed (STA-27). HTTP 409. Retry later.
 */
export class StateRequestError extends SessionsError {
  static override readonly codes = ['FORBIDDEN', 'IDEMPOTENCY_CONFLICT', 'REQUEST_IN_PROGRESS'] as const;

  /** Milliseconds to wait before a retry (`REQUEST_IN_PROGRESS`). */
  readonly retryAfterMs?: number;

  /** @hidden */
  constructor(
    readonly code: (typeof StateRequestError.codes)[number],
    message: string,
    retryAfterMs?: number,
  ) {
    super(message);
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
  }
}

/** @param needs the required permission */
export function forbidden(needs: string): StateRequestError {
  return new StateRequestError('FORBIDDEN', `Missing permission. Expected: ${needs}.`);
}

export function requestKeyConflict(): StateRequestError {
  const message = 'The Idempotency-Key was already used for a different request. Use a new key for a new request.';
  return new StateRequestError('IDEMPOTENCY_CONFLICT', message);
}

export function requestInProgress(retryAfterMs: number): StateRequestError {
  const message = 'The request with this Idempotency-Key is still in progress. Retry later to get its result.';
  return new StateRequestError('REQUEST_IN_PROGRESS', message, retryAfterMs);
}

/**
 * Some state modules failed; the others succeeded. The HTTP status is that of the most severe error. A status below 500
 * becomes 500 if data may have changed.
 */
export class StateStoresFailedError extends SessionsError {
  static override readonly codes = ['STATE_MODULE_FAILED'];
  readonly code: string;
  readonly retryAfterMs?: number;
  /** False if nothing was changed. */
  readonly maybeApplied: boolean;

  constructor(readonly result: StateOperationResult) {
    const { store, code, message, retryAfterMs } = worstOf(result.errors);
    super(`${store}: ${message}`);
    this.code = code;
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
    this.maybeApplied = mayHaveChanged(result);
  }
}

/** Returns the most important error for the client: the first one with a status of 500 or higher, else the first one. */
function worstOf(errors: readonly StateStoreError[]): StateStoreError {
  return errors.find(({ code }) => statusOfCode(code) >= HttpStatus.INTERNAL_SERVER_ERROR) ?? errors[0];
}

/**
 * Returns whether data may have changed. Built-in modules that reject a request change nothing; for other modules it is
 * unknown.
 */
function mayHaveChanged({ operation, cleared, compacted, errors }: StateOperationResult): boolean {
  if (operation === 'describe') return false;
  const isOwn = ({ store }: StateStoreError): boolean => !(STATE_MODULES as readonly string[]).includes(store);
  return cleared.length > 0 || compacted.length > 0 || errors.some(isOwn);
}

/** The body of every error response of the control plane. */
export interface StateErrorBody extends SessionsErrorBody {
  /** The partial result if only some modules failed. */
  readonly result?: StateOperationResult;
}

export function toStateErrorBody(error: unknown): StateErrorBody {
  return error instanceof StateStoresFailedError ? toFailedBody(error) : toAnyErrorBody(error);
}

/** Creates the body. A status below 500 means that nothing was done, so it is used only if that is certain. */
function toFailedBody(error: StateStoresFailedError): StateErrorBody {
  const body = toErrorBody(error);
  const isRefused = body.statusCode < 500 && !error.maybeApplied;
  const statusCode = isRefused ? body.statusCode : Math.max(body.statusCode, HttpStatus.INTERNAL_SERVER_ERROR);
  return { ...body, statusCode, message: error.message, result: error.result };
}
