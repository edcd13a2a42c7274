import { type StateOwnership } from './state.store.js';
import { type Message, type MessageDraft } from './message.js';

/** A draft whose id was minted. */
export type NewMessage = MessageDraft & {
  readonly id: string;
  /** Who spoke; `null`: no orchestrator. Left out: the orchestrator of the turn that adds it. */
  readonly orchestrator?: string | null;
};

/** A stretch of a log. */
export interface MessageRange {
  /** Messages after this position; default 0. */
  readonly after?: number;
  /** At most this many; default 100. */
  readonly limit?: number;
}

/** The append-only message log of every session (STA-03). Unknown sessions have an empty log; reading writes nothing. */
export interface ConversationLog {
  /**
   * Adds messages at the end, in order; sent again, it adds them again. Turns do not come this way: their messages are
   * part of settle.
   * @throws SessionNotFoundError; SessionStateError with `requireSession` when the session has expired
   */
  append(sessionId: string, messages: readonly NewMessage[], ownership?: StateOwnership): Promise<Message[]>;
  /** The last `limit` messages in order, led by the log's first message when that is a system message. */
  window(sessionId: string, limit: number): Promise<Message[]>;
  /** A stretch of the log in order. */
  page(sessionId: string, range?: MessageRange): Promise<Message[]>;
  /** Sessions that have messages, by id, in the order of its UTF-8 bytes: those after this id. */
  sessions(after: string, limit: number): Promise<string[]>;
}
