import { jsonDigest } from '../common/digests.js';
import { callName } from '../ledger/turn-step.js';
import { toolCallConflict } from './orchestration.errors.js';
import { type OrchestrationProgress, type ToolUse } from './orchestration-state.js';

/** The fields that identify a call (FIX-11). */
export type ToolCall = Pick<ToolUse, 'tool' | 'callId' | 'input'>;

/** @throws StateSerializationError for an input that is not JSON */
export function toToolCall(
  tool: string,
  { callId, input }: { readonly callId?: string | undefined; readonly input?: unknown },
): ToolCall {
  return {
    tool,
    ...(callId === undefined ? {} : { callId: callName(callId) }),
    ...(input === undefined ? {} : { input: jsonDigest(input, 'options.input') }),
  };
}

/** Returns true if both calls have the same tool and, if both have an input, the same input. */
export function isSameCall(one: ToolCall, other: ToolCall): boolean {
  const isSameInput = one.input === undefined || other.input === undefined || one.input === other.input;
  return one.tool === other.tool && isSameInput;
}

/**
 * Checks the id of a use outside of turns after it was added. The use has no effect if its id belongs to another call.
 * @throws HandlerError (`TOOL_CALL_CONFLICT`)
 */
export function assertOwnCall({ toolHistory }: OrchestrationProgress, call: ToolCall): void {
  const { callId } = call;
  if (callId === undefined) return;
  const other = toolHistory.find((use) => use.callId === callId && use.turnId === undefined && !isSameCall(use, call));
  if (other) throw toolCallConflict(callId, other.tool);
}
