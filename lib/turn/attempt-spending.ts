import { type StateChange } from '../ledger/state.store.js';
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
   * Works like {@link record}, but records in one call at a time: two calls that arrive out of order would store the
   * smaller number. The tokens of a step may be part of the call that is under way, so the step waits for it: a step is
   * never stored without its tokens (AIS-05).
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

  /**
   * Returns the tokens for a settlement. `places` is omitted, because no later attempt can count them again.
   * @param change another change of the document that counts the tokens
   */
  static settled(
    spending: TurnSpending | undefined,
    change?: StateChange,
  ): Pick<TurnSettlement, 'usage' | 'stateChanges'> {
    const all = joined(spending?.change, change);
    const changes = all ? { stateChanges: [all] } : {};
    if (!spending) return changes;
    const { places: _, ...usage } = spending.usage;
    return { usage, ...changes };
  }
}

/** Returns one change for two of the same document: a settlement has at most one. */
function joined(first: StateChange | undefined, second: StateChange | undefined): StateChange | undefined {
  if (!first || !second) return first ?? second;
  const entries = [...first.append.entries, ...second.append.entries];
  return { ...first, append: { ...first.append, entries } };
}
