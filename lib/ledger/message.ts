import { type JsonObject } from '../common/json.js';

/** The role of the author. A `tool` message contains the result of a call by an `assistant`. */
export type MessageRole = 'system' | 'user' | 'assistant' | 'tool';

/** A part of a message with more than text: `{ type: 'image', ... }`. Stored unchanged. */
export interface MessagePart extends JsonObject {
  readonly type: string;
}

/** A tool call requested by an assistant message. */
export interface MessageToolCall {
  readonly id: string;
  readonly name: string;
  /** The arguments from the model: JSON text, or the parsed value. */
  readonly arguments: string | JsonObject;
}

/** A message before it is stored in the log. */
export interface MessageDraft {
  readonly role: MessageRole;
  /** The content; `null` for an assistant message that only calls tools. */
  readonly content: string | readonly MessagePart[] | null;
  readonly name?: string;
  readonly metadata?: JsonObject;
  readonly toolCalls?: readonly MessageToolCall[];
  /** On a `tool` message: the call that it answers. */
  readonly toolCallId?: string;
  /** The message's id. Default: a generated id. */
  readonly id?: string;
}

/** A message of a session's log (STA-03). */
export interface ConversationMessage extends MessageDraft {
  readonly id: string;
  /** The position in the log, from 1 without gaps. */
  readonly position: number;
  /** ISO-8601, by the store's clock. */
  readonly createdAt: string;
  /** The orchestrator and turn that wrote the message. Absent if no turn wrote it. */
  readonly orchestrator?: string;
  readonly turnId?: string;
  /** On a summary: the positions of the messages that it replaces. They remain in the log. */
  readonly replaces?: MessageSpan;
}

/** A range of a log, both ends included. */
export interface MessageSpan {
  readonly from: number;
  readonly through: number;
}
