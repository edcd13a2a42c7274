import { type JsonObject, type JsonValue } from '../common/json.js';
import { type MessageSpan } from './message.js';
import { type StateName } from './state.store.js';

/** An orchestrator's state in a session after one settled turn (BOT-20). */
export interface Checkpoint {
  readonly orchestrator: string;
  readonly sessionId: string;
  /** From 0, without gaps, per orchestrator and session. */
  readonly turnIndex: number;
  readonly state: JsonObject;
  /** The intents that the turn was routed to. */
  readonly lastRoute: readonly string[];
  /** Of the definition that wrote it, see drift. */
  readonly signature: string;
  readonly version: string;
  /** All intents of the definition that wrote it; absent: unknown. */
  readonly intents?: readonly string[];
  /** The epoch of the message log that positions are of; absent: the log was never reset. */
  readonly log?: string;
  /** Messages up to this position are part of a summary; 0 when none are. */
  readonly summarizedThrough: number;
  /** ISO-8601, by the store's clock. */
  readonly savedAt: string;
  readonly turnId?: string;
  /** The index that this one goes on from; absent on the first. */
  readonly parent?: number;
  /**
   * Where the messages of turns stand that were taken back: they do not count any more, for this orchestrator and from here on.
   * In order, and apart from each other.
   */
  readonly undone?: readonly MessageSpan[];
  /** The session's state documents as the turn left them, for whoever goes back to it. */
  readonly documents?: readonly StateSnapshot[];
}

/** What a state document meant at one moment, in one value. */
export interface StateSnapshot {
  readonly name: StateName;
  readonly value: JsonValue;
}

/** A checkpoint as it is written: the store stamps when. */
export type NewCheckpoint = Omit<Checkpoint, 'savedAt'>;
