import { type StateOwnership } from './state.store.js';
import { type ConversationMessage, type MessageDraft } from './message.js';

/** A draft with its id. */
export type NewMessage = MessageDraft & {
  readonly id: string;
  /** The orchestrator that wrote the message; `null`: none. Absent: the orchestrator of the turn that adds it. */
  readonly orchestrator?: string | null;
};

/** Selects a range of a log. */
export interface MessageRange {
  /** Returns messages after this position. Default 0. */
  readonly after?: number;
  /** Maximum number of messages. Default 100. */
  readonly limit?: number;
}

/**
 * The append-only message log of every session (STA-03). Unknown sessions have an empty log; reading writes nothing.
 */
export interface ConversationLog {
  /**
   * Appends messages in order. A repeated call appends them again. Turns do not use this method: their messages are
   * part of settle.
   * @throws SessionNotFoundError; SessionStateError with `requireSession` if the session has expired
   */
  append(
    sessionId: string,
    messages: readonly NewMessage[],
    ownership?: StateOwnership,
  ): Promise<ConversationMessage[]>;
  /** Returns the last `limit` messages in order, preceded by the first message of the log if it is a system message. */
  window(sessionId: string, limit: number): Promise<ConversationMessage[]>;
  /** Returns a range of the log in order. */
  page(sessionId: string, range?: MessageRange): Promise<ConversationMessage[]>;
  /** Returns sessions with messages, by id in the order of its UTF-8 bytes, after this id. */
  sessions(after: string, limit: number): Promise<string[]>;
}
