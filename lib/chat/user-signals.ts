const APPROVAL = 'approval:';
const TOOL_OUTPUT = 'tool-output:';

/**
 * Returns the name of the signal that answers the approval request of a tool call (AIS-16):
 * `turns.signal(turnId, approvalSignal(toolCallId), { approved: true })`.
 */
export function approvalSignal(toolCallId: string): string {
  return `${APPROVAL}${toolCallId}`;
}

/**
 * Returns the name of the signal with the output of a tool that the client runs (AIS-16):
 * `turns.signal(turnId, toolOutputSignal(toolCallId), { output: 'Paris' })`.
 */
export function toolOutputSignal(toolCallId: string): string {
  return `${TOOL_OUTPUT}${toolCallId}`;
}

/** Returns whether a signal is an answer of the user who sees the chat. */
export function isUserSignal(name: string): boolean {
  return name.startsWith(APPROVAL) || name.startsWith(TOOL_OUTPUT);
}
