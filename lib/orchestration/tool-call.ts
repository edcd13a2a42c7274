import { jsonDigest } from '../common/json-digest.js';
import { ToolCallConflictError } from './orchestration.errors.js';
import { type OrchestrationProgress, type ToolUse } from './orchestration-state.js';

/** What tells calls with an id apart (FIX-11). */
export type ToolCall = Pick<ToolUse, 'tool' | 'callId' | 'input'>;

/** @throws StateSerializationError for an input that JSON cannot carry */
export function toToolCall(
  tool: string,
  { callId, input }: { readonly callId?: string | undefined; readonly input?: unknown },
): ToolCall {
  return {
    tool,
    ...(callId === undefined ? {} : { callId }),
    ...(input === undefined ? {} : { input: jsonDigest(input, 'options.input') }),
  };
}

/** Whether both are of one tool and, where both have one, of one input. */
export function isSameCall(one: ToolCall, other: ToolCall): boolean {
  const isSameInput = one.input === undefined || other.input === undefined || one.input === other.input;
  return one.tool === other.tool && isSameInput;
}

/**
 * To be asked after a use outside of turns was added, which has no effect if its id belongs to another call.
 * @throws ToolCallConflictError
 */
export function assertOwnCall({ toolHistory }: OrchestrationProgress, call: ToolCall): void {
  const { callId } = call;
  if (callId === undefined) return;
  const other = toolHistory.find((use) => use.callId === callId && use.turnId === undefined && !isSameCall(use, call));
  if (other) throw new ToolCallConflictError(callId, other.tool);
}
