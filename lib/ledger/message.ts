import { type JsonObject } from '../common/json.js';

/** Who speaks: `tool` gives the results of the calls of an `assistant`. */
export type MessageRole = 'system' | 'user' | 'assistant' | 'tool';

/** A piece of a message that is more than text: `{ type: 'image', ... }`; kept as it is. */
export interface MessagePart extends JsonObject {
  readonly type: string;
}

/** A call of a tool that an assistant message asks for. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** As the model wrote them: JSON text, or the parsed value. */
  readonly arguments: string | JsonObject;
}

/** A message before the log has taken it. */
export interface MessageDraft {
  readonly role: MessageRole;
  /** `null` for an assistant message that only calls tools. */
  readonly content: string | readonly MessagePart[] | null;
  readonly name?: string;
  readonly metadata?: JsonObject;
  readonly toolCalls?: readonly ToolCall[];
  /** On a `tool` message: the call that it answers. */
  readonly toolCallId?: string;
  /** The message's id. Default: minted. */
  readonly id?: string;
}

/** A message of a session's log (STA-03). */
export interface Message extends MessageDraft {
  readonly id: string;
  /** From 1, without gaps. */
  readonly position: number;
  /** ISO-8601, by the store's clock. */
  readonly createdAt: string;
  /** Who spoke, and in which turn; absent on messages that no turn wrote. */
  readonly orchestrator?: string;
  readonly turnId?: string;
  /** On a summary, which stands for the messages at these positions: they are still in the log. */
  readonly replaces?: MessageSpan;
}

/** A stretch of a log, both ends included. */
export interface MessageSpan {
  readonly from: number;
  readonly through: number;
}
