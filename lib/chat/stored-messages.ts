import { toJson } from '../common/json.js';
import { type MessageDraft } from '../ledger/message.js';
import { AnswerParts } from './answer-parts.js';
import { defined } from './chunk-fields.js';
import { mergeMetadata } from './merge-metadata.js';
import { readStored, type StoredMessage, uiFieldsOf } from './stored-content.js';
import { type AnyUIMessage, type UIPart } from './ui-message.js';

/** A UI message to which parts are added. */
interface OpenMessage extends AnyUIMessage {
  metadata?: unknown;
  readonly parts: UIPart[];
}

/**
 * Returns the draft that stores a UI message (AIS-06). Its content is the message's parts, or a string for plain text
 * of a user or of the system. The id and the metadata are stored as `metadata.ui`.
 * @throws StateSerializationError for values that JSON cannot represent
 */
export function fromUIMessage({ id, role, parts, metadata }: AnyUIMessage): MessageDraft {
  const content = (role === 'assistant' ? undefined : plainTextOf(parts)) ?? parts;
  return toJson({ role, content, metadata: { ui: { id, metadata } } }, 'message') as unknown as MessageDraft;
}

/**
 * Returns the draft that stores an answer. The message has no id of its own: clients know it by the id of its turn.
 * @throws StateSerializationError for values that JSON cannot represent
 */
export function fromAnswer({ parts, metadata }: AnyUIMessage): MessageDraft {
  const ui = metadata === undefined ? undefined : { ui: { metadata } };
  return toJson({ role: 'assistant', content: parts, metadata: ui }, 'message') as unknown as MessageDraft;
}

/**
 * Returns messages of any origin as UI messages (AIS-06).
 *
 * - The `toolCalls` of an assistant and the results that follow, in `tool` messages or in `tool-result` parts of the
 *   user's, become tool parts. Results without a call are left out.
 * - Consecutive messages of an assistant in the same turn are one UI message, because clients received them as one.
 *   Their metadata is merged.
 * - The id is the client's. If a client did not send the message, the id of an answer is the turn's id, because clients
 *   received the answer under this id. Otherwise it is the message's id.
 */
export function toUIMessages<Message extends AnyUIMessage = AnyUIMessage>(
  messages: readonly StoredMessage[],
): Message[] {
  const answers = new AnswerParts();
  const found: OpenMessage[] = [];
  const ids = new Set<string>();
  for (const [index, { message, parts, model }] of readStored(messages).entries()) {
    const own = parts ? answers.ofUI(parts) : answers.of(model.content);
    const { role, turnId } = message;
    const isAnswer = parts !== undefined && parts.length > 0 && own.length === 0;
    if (role === 'tool' || isAnswer) continue;
    const ui = uiFieldsOf(message);
    const last = found.at(-1);
    if (role === 'assistant' && ui?.id === undefined && last?.role === role && last.id === turnId) {
      last.parts.push(...(own[0]?.type === 'step-start' ? own : [{ type: 'step-start' }, ...own]));
      Object.assign(last, defined({ metadata: mergeMetadata(last.metadata, ui?.metadata) }));
      continue;
    }
    const answerId = role === 'assistant' && turnId !== undefined && !ids.has(turnId) ? turnId : undefined;
    const id = ui?.id ?? answerId ?? message.id ?? `message-${index}`;
    ids.add(id);
    found.push({ id, role, ...(ui?.metadata === undefined ? {} : { metadata: ui.metadata }), parts: [...own] });
  }
  return found as unknown as Message[];
}

/** Returns the text if the message is a single part with nothing but text. */
function plainTextOf(parts: readonly UIPart[]): string | undefined {
  const [{ type, text, ...rest } = { type: '' }, ...others] = parts;
  const isPlain = type === 'text' && typeof text === 'string' && others.length === 0;
  return isPlain && Object.values(rest).every((value) => value === undefined) ? text : undefined;
}
