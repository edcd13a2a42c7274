import { type StateOperation } from '../../state/state-report.js';
import { type StateRequest } from '../../state/state-request.js';
import { type Principal } from '../../transport/principal.js';
import { rawRequest } from '../../transport/http.transport.js';

/** Data about a request in progress. */
export interface StateCall {
  readonly operation: StateOperation;
  readonly startedAt: number;
  principal?: Principal;
  /** Set after the body was validated. */
  request?: StateRequest;
  /** True if the audit event was emitted. */
  reported: boolean;
}

const calls = new WeakMap<object, StateCall>();

/** Returns the data of a request, which is created by the first call. */
export function callOf(request: object, operation: StateOperation): StateCall {
  const raw = rawRequest(request);
  const known = calls.get(raw);
  if (known) return known;
  const call: StateCall = { operation, startedAt: performance.now(), reported: false };
  calls.set(raw, call);
  return call;
}
