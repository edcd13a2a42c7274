import { HttpStatus } from '@nestjs/common';
import { type StateOperationResult } from '../../state/state-report.js';
import { toAnyErrorBody } from '../controllers/error-body.js';
import { type SessionsErrorBody, toErrorBody } from '../../transport/sessions-error-body.js';
import { StateStoresFailedError } from './state-http.errors.js';

/** What a client of the control plane gets for any error at all. */
export interface StateErrorBody extends SessionsErrorBody {
  /** What was done all the same, where only some of the modules failed. */
  readonly result?: StateOperationResult;
}

export function toStateErrorBody(error: unknown): StateErrorBody {
  return error instanceof StateStoresFailedError ? toFailedBody(error) : toAnyErrorBody(error);
}

/** A refusal says that nothing was done: where that is not certain, it is none. */
function toFailedBody(error: StateStoresFailedError): StateErrorBody {
  const body = toErrorBody(error);
  const isRefused = body.statusCode < 500 && !error.maybeApplied;
  const statusCode = isRefused ? body.statusCode : Math.max(body.statusCode, HttpStatus.INTERNAL_SERVER_ERROR);
  return { ...body, statusCode, message: error.message, result: error.result };
}
