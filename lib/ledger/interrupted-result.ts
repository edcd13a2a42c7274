import { type MessageDraft } from './message.js';

/** The text of the result of a stopped tool call. A model must not conclude that the tool did nothing. */
export const INTERRUPTED = 'Interrupted: the call was stopped before its result was stored. It may have had an effect.';

/** Returns the result of a stopped tool call (FIX-60): a `tool` message that `metadata.error` marks as an error. */
export function interruptedResult({ id, name }: { readonly id: string; readonly name: string }): MessageDraft {
  return { role: 'tool', toolCallId: id, name, content: INTERRUPTED, metadata: { error: 'interrupted' } };
}
