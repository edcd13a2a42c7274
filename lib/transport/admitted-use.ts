import { type ExecutionContext } from '@nestjs/common';
import { type ToolOutcome } from '../orchestration/orchestration-state.js';
import { transportOf } from './transport-of.js';

/** Records the outcome of a use of a tool. */
export type RecordUse = (outcome: ToolOutcome) => Promise<unknown>;

/** Asks the plan for a use. Rejects when the plan does not allow it. */
export type AdmitUse = () => Promise<RecordUse>;

const wanted = new WeakMap<object, AdmitUse>();

const RECORDED: AdmitUse = () => Promise.resolve(() => Promise.resolve());

/** Leaves with a request how to admit its use, for the interceptor: a guard that refuses the request later uses nothing. */
export function wantUse(context: ExecutionContext, admit: AdmitUse): void {
  wanted.set(carrierOf(context), admit);
}

/** @returns the second time, for a decorator on class and handler: a use that is not recorded; `undefined` without a guard */
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
