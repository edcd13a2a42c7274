import { INTERRUPTED } from '../ledger/interrupted-result.js';
import { type MessageDraft } from '../ledger/message.js';
import { MessageFold } from './message-fold.js';
import { fromAnswer } from './stored-messages.js';
import { type UIChunk, type UIMessage, type UIPart } from './ui-message.js';

/** States of tool calls without a result. */
const OPEN_CALL = ['input-available', 'approval-requested', 'approval-responded'];

/** Returns the draft that stores the answer so far when it is stopped; `undefined` if clients have seen nothing. */
export function stoppedAnswer(chunks: readonly UIChunk[]): MessageDraft | undefined {
  const shown = new MessageFold();
  for (const chunk of chunks) shown.add(chunk);
  const message = stoppedMessage(shown.message);
  return message.parts.length === 0 ? undefined : fromAnswer(message);
}

/**
 * Returns the answer so far as a complete message, to keep it when the answer is stopped: blocks end where they are,
 * and tool calls without a result have an `interrupted` error. Incomplete calls and empty blocks are left out.
 */
export function stoppedMessage(message: UIMessage): UIMessage {
  const parts = message.parts.map(stopped).filter((part) => part !== undefined);
  const isEmpty = parts.every(({ type }) => type === 'step-start');
  return { ...message, parts: isEmpty ? [] : parts };
}

function stopped(part: UIPart): UIPart | undefined {
  const { type, state, text } = part;
  if (type === 'text' || type === 'reasoning') return text === '' ? undefined : { ...part, state: 'done' };
  if (state === 'input-streaming') return undefined;
  if (typeof state === 'string' && OPEN_CALL.includes(state)) {
    const { approval: _, ...call } = part;
    return { ...call, state: 'output-error', errorText: INTERRUPTED };
  }
  // The tool had more to say.
  if (part.preliminary === true) {
    const { preliminary: _, ...call } = part;
    return call;
  }
  return part;
}
