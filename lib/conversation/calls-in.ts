import { isResultPart } from '../chat/result-part.js';
import { type MessageDraft, type MessagePart, type MessageToolCall } from '../ledger/message.js';

/** States of a tool part of a UI message that has no result yet. Its result follows in another message, or never. */
const OPEN: readonly unknown[] = ['input-available', 'approval-requested'];

/** A call, without its arguments. */
export type ToolCall = Pick<MessageToolCall, 'id' | 'name'>;

/** Returns the calls of a message whose results are in other messages. */
export function callsIn({ role, content, toolCalls = [] }: MessageDraft): readonly ToolCall[] {
  if (role !== 'assistant' || !Array.isArray(content)) return toolCalls;
  const open = (content as readonly MessagePart[]).flatMap(
    ({ type, state, toolCallId, toolName, providerExecuted }) => {
      if (!OPEN.includes(state) || providerExecuted === true || typeof toolCallId !== 'string') return [];
      return { id: toolCallId, name: type === 'dynamic-tool' ? (toolName as string) : type.slice('tool-'.length) };
    },
  );
  return open.length > 0 ? [...toolCalls, ...open] : toolCalls;
}

/**
 * Returns the ids of the calls that a message answers. A message of the user answers calls with parts of type
 * `tool-result` (FIX-60). `undefined` is the id of a `tool` message without one, which answers the call before it. A
 * `tool` message that only answers an approval has no result.
 */
export function resultsIn({ role, content, toolCallId }: MessageDraft): readonly (string | undefined)[] {
  if (role === 'tool' && toolCallId !== undefined) return [toolCallId];
  if (role !== 'tool' && role !== 'user') return [];
  const parts = Array.isArray(content) ? (content as readonly MessagePart[]) : [];
  const ids = parts.filter(isResultPart).map((part) => part.toolCallId as string);
  const isResult = role === 'tool' && !parts.some(({ type }) => type === 'tool-approval-response');
  return ids.length > 0 || !isResult ? ids : [undefined];
}

/** Returns the message without the results that `isKept` rejects. */
export function withResults<M extends MessageDraft>(message: M, isKept: (id: string) => boolean): M {
  const { content } = message;
  if (!Array.isArray(content)) return message;
  const parts = content as readonly MessagePart[];
  const kept = parts.filter((part) => !isResultPart(part) || isKept(part.toolCallId as string));
  return kept.length === content.length ? message : { ...message, content: kept };
}
