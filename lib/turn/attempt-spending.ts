import { type TurnSettlement } from '../ledger/turn.store.js';
import { type TurnSpending } from '../ledger/turn-usage.js';
import { type TurnMeter } from './turn-runner.js';

/** Records the tokens of an attempt together with its other writes (FIX-15). */
export class AttemptSpending {
  private meter: TurnMeter | null = null;
  /** Resolves when the step that records tokens has been stored, or has failed. */
  private recording: Promise<void> | null = null;

  measure(meter: TurnMeter): void {
    this.meter = meter;
  }

  /** The tokens that no write has recorded yet. */
  read(): TurnSpending | undefined {
    return this.meter?.read() ?? undefined;
  }

  recorded(spending: TurnSpending | undefined): void {
    if (spending) this.meter?.recorded(spending);
  }

  /** Makes a store call that records the tokens. */
  async record<T>(call: (spending?: TurnSpending) => Promise<T>): Promise<T> {
    const spending = this.read();
    const result = await call(spending);
    this.recorded(spending);
    return result;
  }

  /**
   * Works like {@link record}, but one call at a time: two calls that arrive out of order would store the smaller
   * number. A call waits while tokens are being recorded that may be its own: a step is never stored without its tokens
   * (AIS-05).
   */
  async recordAlone<T>(call: (spending?: TurnSpending) => Promise<T>): Promise<T> {
    while (this.recording && this.read()) await this.recording;
    if (!this.read()) return call();
    const recorded = this.record(call);
    const isOver = (): void => {
      this.recording = null;
    };
    this.recording = recorded.then(isOver, isOver);
    return recorded;
  }

  /** Returns the tokens for a settlement. `places` is omitted, because no later attempt can count them again. */
  static settled(spending: TurnSpending | undefined): Pick<TurnSettlement, 'usage' | 'stateChanges'> {
    if (!spending) return {};
    const { places: _, ...usage } = spending.usage;
    const { change } = spending;
    return change ? { usage, stateChanges: [change] } : { usage };
  }
}
