import { type Patch } from '../common/patch.js';
import { type ConversationMessage, type MessageDraft } from '../ledger/message.js';
import { type Turn } from '../ledger/turn.js';

/** Messages of one turn, or those that no known turn wrote. */
export interface TranscriptTurn {
  /** Absent for messages that no turn wrote. */
  readonly id?: string;
  /** Absent if the turn was purged, or no turn wrote the messages. */
  readonly turn?: Turn;
  /** At least one. A message of a turn that has none in the log is the input of the turn. */
  readonly messages: readonly TranscriptMessage[];
}

/** A message of the log, or one that is not in the log. */
export type TranscriptMessage = MessageDraft & { readonly id: string } & Patch<ConversationMessage>;
