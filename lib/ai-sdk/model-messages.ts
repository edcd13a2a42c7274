import { convertToModelMessages, type ModelMessage, type ToolSet, type UIMessage } from 'ai';
import { isResultPart } from '../chat/result-part.js';
import { readStored, type StoredMessage } from '../chat/stored-content.js';
import { type ModelMessageLike, storeModelMessage } from '../chat/stored-model-message.js';
import { type UIPart } from '../chat/ui-message.js';
import { callsIn } from '../conversation/calls-in.js';
import { type ConversationMessage, type MessageDraft } from '../ledger/message.js';
import { keepWholeCalls } from './whole-calls.js';

/** `convertToModelMessages` of ai 6 or 7. */
export type Convert = typeof convertToModelMessages;
type ConvertOptions = NonNullable<Parameters<Convert>[1]>;

/** Options of {@link toModelMessages}. */
export interface ModelMessagesOptions {
  /** The tools, if their `toModelOutput` decides what a model receives of a result. Default: none. */
  readonly tools?: ToolSet;
  /** Returns what a model receives of a `data-*` part. Default: nothing. */
  readonly convertDataPart?: ConvertOptions['convertDataPart'];
}

/**
 * Returns stored messages, such as `turn.history`, as messages for a model (AIS-06). UI messages are converted by
 * `convertToModelMessages` of the AI SDK, and messages of {@link fromModelMessages} are restored.
 *
 * - Tool calls without a result, and results without their call, are left out, because providers reject them. An
 *   approved call remains if nothing follows: the SDK runs it.
 * - Summaries are system messages. Pass `allowSystemInMessages: true` to the SDK with them: ai 7 rejects them
 *   otherwise, and ai 6 warns.
 * @throws TypeError with ai 7 if the URL of a file is not absolute
 */
export function toModelMessages(
  messages: readonly (ConversationMessage | MessageDraft)[],
  options?: ModelMessagesOptions,
): Promise<ModelMessage[]> {
  return convertStored(convertToModelMessages, messages, options);
}

/** Works like {@link toModelMessages}, with the given conversion of UI messages. */
export async function convertStored(
  convert: Convert,
  messages: readonly StoredMessage[],
  options?: ModelMessagesOptions,
): Promise<ModelMessage[]> {
  const converted: ModelMessage[] = [];
  const names = new Map<string, string>();
  for (const { message, parts, model } of readStored(messages)) {
    for (const { id, name } of callsIn(message)) names.set(id, name);
    if (model) converted.push(model as ModelMessage);
    else {
      const results = message.role === 'user' ? parts.filter(isResultPart) : [];
      const called = { role: 'assistant', parts: results.map((part) => toAnsweredCall(part, names)) };
      const said = { role: message.role, parts: parts.filter((part) => !results.includes(part)).map(withoutDraft) };
      const answers = results.length > 0 ? await convert([called as unknown as UIMessage], options) : [];
      converted.push(...answers.filter(({ role }) => role === 'tool'));
      if (said.parts.length > 0) converted.push(...(await convert([said as unknown as UIMessage], options)));
    }
  }
  return keepWholeCalls(converted);
}

/** Returns a result of a tool that a client ran (FIX-60) as the UI part of its call, which `convert` understands. */
function toAnsweredCall({ toolCallId, output = null, errorText }: UIPart, names: ReadonlyMap<string, string>): UIPart {
  const call = { type: `tool-${names.get(toolCallId as string)}`, toolCallId, input: {} };
  if (errorText !== undefined) return { ...call, state: 'output-error', errorText };
  return { ...call, state: 'output-available', output };
}

/** Returns a tool call that is still written, or whose output is preliminary, as a call without a result. */
function withoutDraft(part: UIPart): UIPart {
  return part.state === 'input-streaming' || part.preliminary === true ? { ...part, state: 'input-available' } : part;
}

/**
 * Returns drafts that store messages of a model (AIS-06), such as `result.response.messages` of ai 6 or
 * `result.responseMessages` of ai 7. Each message becomes one message of the log, and {@link toModelMessages} restores
 * it, with its bytes (as `Uint8Array`), URLs and dates.
 * @throws StateSerializationError for other values that JSON cannot represent
 */
export function fromModelMessages(messages: readonly ModelMessage[]): MessageDraft[] {
  return messages.map((message, index) => storeModelMessage(message as ModelMessageLike, `messages[${index}]`));
}
