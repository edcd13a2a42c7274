import { type JsonObject, type JsonValue } from '../common/json.js';
import { type MessageSpan } from './message.js';
import { type StateName } from './state.store.js';

/** An orchestrator's state in a session after one settled turn (BOT-20). */
export interface Checkpoint {
  readonly orchestrator: string;
  readonly sessionId: string;
  /** The index, from 0 without gaps, per orchestrator and session. */
  readonly turnIndex: number;
  readonly state: JsonObject;
  /** The intents that the turn was routed to. */
  readonly lastRoute: readonly string[];
  /** The signature of the definition that wrote it, see drift. */
  readonly signature: string;
  readonly version: string;
  /** All intents of the definition that wrote it. Absent: unknown. */
  readonly intents?: readonly string[];
  /** The epoch of the message log that the positions refer to. Absent: the log was never reset. */
  readonly log?: string;
  /** Messages up to this position are summarized; 0: none. */
  readonly summarizedThrough: number;
  /** ISO-8601, by the store's clock. */
  readonly savedAt: string;
  readonly turnId?: string;
  /** The index of the checkpoint that this one continues; absent on the first. */
  readonly parent?: number;
  /**
   * The positions of messages that were undone: they no longer count for this orchestrator from this checkpoint on.
   * Ordered and disjoint.
   */
  readonly undone?: readonly MessageSpan[];
  /** The turn that this one replaced: `parent` is then the checkpoint before that turn. */
  readonly replaces?: string;
  /** The session's state documents after the turn, used to restore them. */
  readonly documents?: readonly StateSnapshot[];
}

/** The content of a state document at one moment, as one value. */
export interface StateSnapshot {
  readonly name: StateName;
  readonly value: JsonValue;
}

/** A new checkpoint. The store sets its time. */
export type NewCheckpoint = Omit<Checkpoint, 'savedAt'>;
