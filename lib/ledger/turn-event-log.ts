import { type NewTurnEvent, type TurnEvent } from './turn-event.js';
import { type TurnHold } from './turn.store.js';

/** Events that one attempt emitted within a short time. */
export interface TurnEventBatch {
  /** 1, 2, 3, ... within the attempt; identifies a repeated batch. */
  readonly number: number;
  /** The events, at least one. */
  readonly events: readonly NewTurnEvent[];
  /** Written before the batch if the turn's last event belongs to an earlier attempt. */
  readonly restart: NewTurnEvent;
}

/**
 * The events of all turns, numbered from 1 without gaps (TRN-30). They are deleted with their turn, or when they expire
 * after its end.
 */
export interface TurnEventLog {
  /**
   * Appends a batch in one atomic operation. Ignored if the attempt already wrote a batch with this or a higher
   * number.
   * @param ttlMs how long the turn's events are kept after its end, in milliseconds by the store's clock; the latest
   * value applies
   * @returns the offset of the turn's last event
   * @throws TurnFencedError, also after the end of the turn
   */
  append(hold: TurnHold, batch: TurnEventBatch, ttlMs: number): Promise<number>;
  /**
   * Returns the events after an offset, up to the end of the batch that contains the event `after + limit`; fewer than
   * `limit` if the log ends before. Pages of whole batches read no batch twice (FIX-85). An unknown turn has no events.
   */
  read(turnId: string, after: number, limit: number): Promise<TurnEvent[]>;
  /** Returns the offset of the turn's last event; 0 if it has none. */
  last(turnId: string): Promise<number>;
  /**
   * Notifies of events that any process appends to a turn. Optional: readers of a store without it poll more often.
   * @param listener receives the offset of the turn's last event, or `null` if events may have been missed: once the
   * subscription is active, and after each reconnect
   * @returns ends the subscription
   */
  subscribe?(turnId: string, listener: (last: number | null) => void): () => void;
  /**
   * Deletes the expired events of at most `limit` turns.
   * @returns the number of turns; 0 if the store expires events on its own
   */
  deleteExpired(limit: number): Promise<number>;
}
