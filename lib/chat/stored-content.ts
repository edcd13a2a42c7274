import { type Patch } from '../common/patch.js';
import { isPlainObject } from '../common/json.js';
import { type ConversationMessage, type MessageDraft, type MessageToolCall } from '../ledger/message.js';
import { isStoredModelMessage, type ModelMessageLike, readModelMessage } from './stored-model-message.js';
import { type UIPart } from './ui-message.js';

/** A message from a log, or one that is not stored yet. */
export type StoredMessage = MessageDraft & Patch<ConversationMessage>;

/** The fields of a UI message that are stored under `metadata.ui`. */
export interface UIFields {
  readonly id?: string;
  readonly metadata?: unknown;
}

/** A stored message, and either the UI parts or the model message that it contains. */
export type StoredContent = { readonly message: StoredMessage } & (
  | { readonly parts: readonly UIPart[]; readonly model?: never }
  | { readonly parts?: never; readonly model: ModelMessageLike }
);

/** Reads messages of any origin. Those with an array of parts are UI messages, if nothing else marks them. */
export function readStored(messages: readonly StoredMessage[]): StoredContent[] {
  let calls: readonly MessageToolCall[] = [];
  return messages.map((message) => {
    const { content, toolCalls = [] } = message;
    if (toolCalls.length > 0) calls = toolCalls;
    if (!isStoredModelMessage(message)) {
      if (Array.isArray(content)) return { message, parts: content };
      if (typeof content === 'string' && uiFieldsOf(message))
        return { message, parts: [{ type: 'text', text: content }] };
    }
    return { message, model: readModelMessage(message, calls) };
  });
}

/** Returns what `metadata.ui` contains, or `undefined`. */
export function uiFieldsOf({ metadata }: MessageDraft): UIFields | undefined {
  return isPlainObject(metadata?.ui) ? metadata.ui : undefined;
}
