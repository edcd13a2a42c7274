import { type ExecutionContext } from '@nestjs/common';
import { type ToolOutcome } from '../orchestration/orchestration-state.js';
import { transportOf } from './transport-of.js';

/** Records the outcome of a tool use. */
export type RecordUse = (outcome: ToolOutcome) => Promise<unknown>;

/** Admits a use according to the plan. Rejects if the plan does not allow it. */
export type AdmitUse = () => Promise<RecordUse>;

const wanted = new WeakMap<object, AdmitUse>();

const RECORDED: AdmitUse = () => Promise.resolve(() => Promise.resolve());

/**
 * Stores in the request how to admit its use. The interceptor admits it later, so a guard that rejects the request
 * consumes no use.
 */
export function wantUse(context: ExecutionContext, admit: AdmitUse): void {
  wanted.set(carrierOf(context), admit);
}

/**
 * Returns the stored function.
 * @returns for the second call, with a decorator on class and handler: a use that is not recorded; `undefined` without
 * a guard
 */
export function takeUse(context: ExecutionContext): AdmitUse | undefined {
  const carrier = carrierOf(context);
  const admit = wanted.get(carrier);
  if (admit) wanted.set(carrier, RECORDED);
  return admit;
}

function carrierOf(context: ExecutionContext): object {
  const [carrier] = transportOf(context).carriers(context);
  return carrier;
}
