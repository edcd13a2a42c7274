import { type UIMessage } from 'ai';
import { fromUIMessage as storeUIMessage, toUIMessages as readUIMessages } from '../chat/stored-messages.js';
import { type ConversationMessage, type MessageDraft } from '../ledger/message.js';

/**
 * Returns stored messages of any origin as the UI messages that `useChat` shows (AIS-06).
 *
 * - Tool calls that were stored without the AI SDK, or by `fromModelMessages`, are dynamic tool parts with their
 *   results. Results without a call are left out.
 * - Consecutive messages of an assistant in the same turn are one UI message, as in the stream of the turn.
 * - The id is the client's. If a client did not send the message, the id of an answer is the turn's id, as in the stream
 *   of the turn. Otherwise it is the message's id.
 */
export function toUIMessages<Message extends UIMessage = UIMessage>(
  messages: readonly (ConversationMessage | MessageDraft)[],
): Message[] {
  return readUIMessages<Message>(messages);
}

/**
 * Returns the draft that stores a UI message (AIS-06), from which {@link toUIMessages} restores it exactly. The content
 * is the message's parts, or a string for plain text of a user or of the system. The id and the metadata of the message
 * are stored as `metadata.ui`.
 * @throws StateSerializationError for values that JSON cannot represent
 */
export function fromUIMessage(message: UIMessage): MessageDraft {
  return storeUIMessage(message);
}
