import { type OperationName } from '../history/history.js';
import { type Call, type DoneCall, isDone, mayBeDone } from './calls.js';

/** The calls by which a worker releases a turn: its handler has ended, or waits. */
export const LETTING_GO: readonly OperationName[] = ['settle', 'retry', 'release', 'wait'];

/** Returns true if the worker may have released the turn by this call. */
export function mayLetGo(call: Call): boolean {
  return LETTING_GO.includes(call.op) && mayBeDone(call) && (!isDone(call) || letsGo(call));
}

/** A wait whose signal had already arrived does not release the turn. */
export function letsGo(call: DoneCall): boolean {
  if (call.op === 'wait') return call.value.status !== 'running';
  return LETTING_GO.includes(call.op);
}
