import { type ExecutionContext } from '@nestjs/common';
import { type ToolOutcome } from '../orchestration/orchestration-state.js';
import { transportOf } from './transport-of.js';

/** Records the outcome of a tool use. */
export type RecordUse = (outcome: ToolOutcome) => Promise<unknown>;

/** Admits a use according to the plan. Rejects if the plan does not allow it. */
export type AdmitUse = () => Promise<RecordUse>;

const deferred = new WeakMap<object, AdmitUse>();

const ALREADY_ADMITTED: AdmitUse = () => Promise.resolve(() => Promise.resolve());

/**
 * Stores in the request how to admit its tool use. `ToolUseInterceptor` does so after all guards, so a request that a later
 * guard rejects does not count as a use.
 */
export function deferUse(context: ExecutionContext, admit: AdmitUse): void {
  deferred.set(carrierOf(context), admit);
}

/**
 * Returns the stored function; `undefined` if `ToolGuard` did not run. With `@RequireTool()` on the class and on the
 * handler, the interceptor runs twice: its second call gets a function that admits and records nothing.
 */
export function takeDeferredUse(context: ExecutionContext): AdmitUse | undefined {
  const carrier = carrierOf(context);
  const admit = deferred.get(carrier);
  if (admit) deferred.set(carrier, ALREADY_ADMITTED);
  return admit;
}

function carrierOf(context: ExecutionContext): object {
  const [carrier] = transportOf(context).carriers(context);
  return carrier;
}
