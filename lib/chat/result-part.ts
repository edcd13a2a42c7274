import { type UIPart } from './ui-message.js';

/**
 * Returns whether a part of a user's message is the result of a tool that the client ran (FIX-60):
 * `{ type: 'tool-result', toolCallId, output }`, or `errorText` in place of `output`.
 */
export function isResultPart({ type, toolCallId }: UIPart): boolean {
  return type === 'tool-result' && typeof toolCallId === 'string';
}
