import { HttpStatus } from '@nestjs/common';
import { statusOfCode } from '../../common/error-status.js';
import { SessionsError } from '../../common/sessions.error.js';
import { STATE_MODULES } from '../../state/state-module.js';
import { type StateOperationResult, type StateStoreError } from '../../state/state-report.js';

/** The principal may not do this (STA-25). HTTP 403. Nothing was read. */
export class StateForbiddenError extends SessionsError {
  readonly code = 'FORBIDDEN';

  /** @param needs what it takes, as the rest of a sentence */
  constructor(readonly needs: string) {
    super(`It takes ${needs}.`);
  }
}

/** The Idempotency-Key came with another request before (STA-27). HTTP 422. Nothing was done. */
export class RequestKeyConflictError extends SessionsError {
  readonly code = 'IDEMPOTENCY_CONFLICT';

  constructor() {
    super('The Idempotency-Key belongs to another request. Use a new key for a new request.');
  }
}

/** The request with this Idempotency-Key is being worked on, or its process died (STA-27). HTTP 409. Send it again later. */
export class RequestInProgressError extends SessionsError {
  readonly code = 'REQUEST_IN_PROGRESS';

  constructor(readonly retryAfterMs: number) {
    super('The request with this Idempotency-Key is being worked on. Send it again later for its result.');
  }
}

/**
 * Some of the state modules failed; the others are done. HTTP: that of the worst module's code; 500 in place of a refusal where
 * something may have been done.
 */
export class StateStoresFailedError extends SessionsError {
  readonly code: string;
  readonly retryAfterMs?: number;
  /** False: it is certain that nothing was changed. */
  readonly maybeApplied: boolean;

  constructor(readonly result: StateOperationResult) {
    const { store, code, message, retryAfterMs } = worstOf(result.errors);
    super(`${store}: ${message}`);
    this.code = code;
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
    this.maybeApplied = mayHaveChanged(result);
  }
}

/** What its client must know first: what was no refusal, if there is such. */
function worstOf(errors: readonly StateStoreError[]): StateStoreError {
  return errors.find(({ code }) => statusOfCode(code) >= HttpStatus.INTERNAL_SERVER_ERROR) ?? errors[0];
}

/** Modules of the package that refuse have done nothing; of others nobody knows. */
function mayHaveChanged({ operation, cleared, compacted, errors }: StateOperationResult): boolean {
  if (operation === 'describe') return false;
  const isOwn = ({ store }: StateStoreError): boolean => !(STATE_MODULES as readonly string[]).includes(store);
  return cleared.length > 0 || compacted.length > 0 || errors.some(isOwn);
}
