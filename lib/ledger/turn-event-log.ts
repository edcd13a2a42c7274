import { type NewTurnEvent, type TurnEvent } from './turn-event.js';
import { type TurnHold } from './turn.store.js';

/** What one attempt emitted in a short while. */
export interface TurnEventBatch {
  /** 1, 2, 3, ... within the attempt: tells a batch that is sent twice. */
  readonly number: number;
  /** At least one. */
  readonly events: readonly NewTurnEvent[];
  /** Goes before the batch when the turn's last event is of an earlier attempt. */
  readonly restart: NewTurnEvent;
}

/**
 * The events of every turn, numbered without gaps from 1 (TRN-30). They go with their turn; those of a turn that is over, as
 * soon as their time is up.
 */
export interface TurnEventLog {
  /**
   * Adds a batch at the end, in one atomic operation. A batch of this attempt whose number is not above the last one's is
   * there already: nothing is written.
   * @param ttlMs how long the turn's events stay once it is over, by the store's clock; the last one that was given counts
   * @returns the offset of the turn's last event
   * @throws TurnFencedError, also once the turn is over
   */
  append(hold: TurnHold, batch: TurnEventBatch, ttlMs: number): Promise<number>;
  /** The next `limit` events after an offset. An unknown turn has none. */
  read(turnId: string, after: number, limit: number): Promise<TurnEvent[]>;
  /** The offset of the turn's last event; 0 when it has none. */
  last(turnId: string): Promise<number>;
  /**
   * Deletes the events of at most `limit` turns whose time is up.
   * @returns of how many turns; 0 as well where the store does that by itself
   */
  deleteExpired(limit: number): Promise<number>;
}
