import { type JsonValue } from '../common/json.js';
import { type TurnEvent } from '../ledger/turn-event.js';
import { type TurnResult } from './turn-result.js';
import { type Turn } from '../ledger/turn.js';

/**
 * A running turn (BOT-01). Iterate over its events, of which `settled` is the last, or await its `result`, or both.
 * Leaving the loop does not stop the turn. Each loop starts with the turn's first event.
 * @typeParam Data the type of the result's `data`
 * @typeParam Event the type of the events
 */
export class TurnStream<Data = JsonValue, Event = TurnEvent> implements AsyncIterable<Event> {
  /**
   * @param turn resolves with the accepted turn. Pass its id to `turns.readEvents` and `turns.events`. Rejects as
   * `submit` does
   * @param result resolves and rejects as `execute` does
   */
  constructor(
    readonly turn: Promise<Turn>,
    readonly result: Promise<TurnResult<Data>>,
    private readonly read: (turnId: string) => AsyncIterable<Event>,
  ) {
    // Unobserved rejections must not end the process.
    for (const promise of [turn, result]) promise.catch(() => undefined);
  }

  /**
   * @throws as `submit`. If the turn ends without a result, the iteration ends with a `settled` event that contains its
   * status
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Event, void, undefined> {
    const { id } = await this.turn;
    yield* this.read(id);
  }
}
