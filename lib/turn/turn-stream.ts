import { type TurnEvent } from '../ledger/turn-event.js';
import { type TurnResult } from './turn-result.js';
import { type Turn } from '../ledger/turn.js';

/**
 * One turn while it runs (BOT-01): iterate over its events, `settled` is the last one, and await its `result`; both, one of
 * them, or neither. Leaving the loop leaves the turn running. Each loop begins with the turn's first event.
 */
export class TurnStream implements AsyncIterable<TurnEvent> {
  /**
   * @param turn as it was accepted: its id is what `turns.readEvents` and `turns.events` go on with elsewhere. Rejects as `submit` does
   * @param result resolves and rejects as `execute` does
   */
  constructor(
    readonly turn: Promise<Turn>,
    readonly result: Promise<TurnResult>,
    private readonly read: (turnId: string) => AsyncIterable<TurnEvent>,
  ) {
    // Whoever asks is told; that nobody asks must not end the process.
    for (const promise of [turn, result]) promise.catch(() => undefined);
  }

  /** @throws as `submit`; a turn that ends without a result ends the iteration, and `settled` says how */
  async *[Symbol.asyncIterator](): AsyncGenerator<TurnEvent, void, undefined> {
    const { id } = await this.turn;
    yield* this.read(id);
  }
}
