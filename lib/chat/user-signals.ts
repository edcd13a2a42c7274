import { sha256 } from '../common/digests.js';
import { isName } from '../common/ids.js';

const APPROVAL = 'approval';
const TOOL_OUTPUT = 'tool-output';

/** Distinguishes calls of a turn to which a provider gave the same id. */
export interface RepeatedCall {
  /** The number of earlier calls of the turn with this id that had the same request. Default 0. */
  readonly earlier?: number | undefined;
}

/**
 * Returns the name of the signal that answers the approval request of a tool call (AIS-16):
 * `turns.signal(turnId, approvalSignal(toolCallId), { approved: true })`.
 * @param repeated required if an earlier call of the turn with this id has asked for an approval (FIX-63)
 */
export function approvalSignal(toolCallId: string, { earlier = 0 }: RepeatedCall = {}): string {
  return nameOf(APPROVAL, toolCallId, earlier);
}

/**
 * Returns the name of the signal with the output of a tool that the client runs (AIS-16):
 * `turns.signal(turnId, toolOutputSignal(toolCallId), { output: 'Paris' })`.
 * @param repeated required if the client has run an earlier call of the turn with this id (FIX-63)
 */
export function toolOutputSignal(toolCallId: string, { earlier = 0 }: RepeatedCall = {}): string {
  return nameOf(TOOL_OUTPUT, toolCallId, earlier);
}

/** Returns whether a signal is an answer of the user who sees the chat. */
export function isUserSignal(name: string): boolean {
  return /^(approval|tool-output)[:/]/.test(name);
}

/** Returns the name of a signal. An id that makes it too long is hashed. */
function nameOf(kind: string, toolCallId: string, earlier: number): string {
  const prefix = earlier === 0 ? kind : `${kind}/${earlier}`;
  const name = `${prefix}:${toolCallId}`;
  return isName(name) ? name : `${prefix}:${sha256(toolCallId)}`;
}
