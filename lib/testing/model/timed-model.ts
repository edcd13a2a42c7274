import { type Durations, type SequentialModel } from './specimen.js';

/** The base class of models with times, in milliseconds since the subject was opened. */
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

  /** Returns the expected time: the predicted one, or on a running clock the seen time unless it is earlier. */
  protected stamp(predicted: number, seen: number | null | undefined): number {
    return this.exact ? predicted : Math.max(predicted, seen ?? predicted);
  }

  /** Returns whether more than `ms` have passed since a time. On a running clock, both answers are valid for 0 ms. */
  protected isLonger(ms: number, since: number, seen: boolean): boolean {
    return this.exact ? this.now - since > ms : ms === 0 && seen;
  }
}
