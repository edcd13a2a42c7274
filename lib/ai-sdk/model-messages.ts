import { convertToModelMessages, type ModelMessage, type ToolSet, type UIMessage } from 'ai';
import { readStored, type StoredMessage } from '../chat/stored-content.js';
import { type ModelMessageLike, storeModelMessage } from '../chat/stored-model-message.js';
import { type UIPart } from '../chat/ui-message.js';
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
  for (const { message, parts, model } of readStored(messages)) {
    if (model) converted.push(model as ModelMessage);
    else {
      const ui = { role: message.role, parts: parts.map(withoutDraft) } as unknown as UIMessage;
      converted.push(...(await convert([ui], options)));
    }
  }
  return keepWholeCalls(converted);
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
