import { type StateOperation } from '../../state/state-report.js';
import { type StateRequest } from '../../state/state-request.js';
import { type Principal } from '../../transport/principal.js';
import { rawRequest } from '../../transport/raw-request.js';

/** What is known of a request while it is answered. */
export interface StateCall {
  readonly operation: StateOperation;
  readonly startedAt: number;
  principal?: Principal;
  /** Once its body was found to be right. */
  request?: StateRequest;
  /** Whether the audit has it. */
  told: boolean;
}

const calls = new WeakMap<object, StateCall>();

/** @returns what is known of it, from its first call on */
export function callOf(request: object, operation: StateOperation): StateCall {
  const raw = rawRequest(request);
  const known = calls.get(raw);
  if (known) return known;
  const call: StateCall = { operation, startedAt: performance.now(), told: false };
  calls.set(raw, call);
  return call;
}
