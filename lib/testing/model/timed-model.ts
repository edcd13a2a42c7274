import { type Durations, type SequentialModel } from './specimen.js';

/** A model of a store that stamps times: milliseconds since its subject was opened. */
export abstract class TimedModel<Operation> implements SequentialModel<Operation> {
  now = 0;
  readonly exact: boolean;

  constructor({ exact }: Durations) {
    this.exact = exact;
  }

  abstract apply(operation: Operation, seen: unknown): unknown;

  elapse(ms: number): void {
    this.now += ms;
  }

  /** What time a store must have written: the one foretold; on a clock that runs by itself, what was seen or later. */
  protected stamp(foretold: number, seen: number | null | undefined): number {
    return this.exact ? foretold : Math.max(foretold, seen ?? foretold);
  }

  /** Whether more than `ms` passed since then. Of no time at all, a clock that runs by itself can say either. */
  protected isLonger(ms: number, since: number, seen: boolean): boolean {
    return this.exact ? this.now - since > ms : ms === 0 && seen;
  }
}
