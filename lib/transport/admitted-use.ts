import { type ExecutionContext } from '@nestjs/common';
import { type ToolOutcome } from '../orchestration/orchestration-state.js';
import { transportOf } from './transport-of.js';

/** Records what came of a use of a tool. */
export type RecordUse = (outcome: ToolOutcome) => Promise<void>;

const admitted = new WeakMap<object, RecordUse>();

const DONE: RecordUse = () => Promise.resolve();

/** The guard let this run of the handler through; `record` is for when it has ended. */
export function admitUse(context: ExecutionContext, record: RecordUse): void {
  admitted.set(carrierOf(context), record);
}

/** @returns the second time, for a decorator on class and handler: what records nothing; `undefined` when no guard was asked */
export function takeUse(context: ExecutionContext): RecordUse | undefined {
  const carrier = carrierOf(context);
  const record = admitted.get(carrier);
  if (record) admitted.set(carrier, DONE);
  return record;
}

function carrierOf(context: ExecutionContext): object {
  const [carrier] = transportOf(context).carriers(context);
  return carrier;
}
