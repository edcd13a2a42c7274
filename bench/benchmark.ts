import { type Sizes } from './sizes.js';
import { type StoreName, type Stores } from './stores.js';

/** What is measured for one row of the specification, or for a chart. */
export interface Benchmark {
  /** The row, as it is asked for on the command line. */
  readonly id: string;
  readonly title: string;
  readonly stores: readonly StoreName[];
  /** @throws WrongAnswerError */
  run(stores: Stores, sizes: Sizes): Promise<Outcome>;
}

export interface Outcome {
  readonly comparisons: readonly Comparison[];
  readonly curves?: readonly Curve[];
  readonly facts?: readonly Fact[];
}

/** One quantity of two contestants, measured in the same rounds. The ratio is `measured` to `base`. */
export interface Comparison {
  readonly what: string;
  readonly unit: Unit;
  readonly base: Series;
  readonly measured: Series;
  /** Left out: nothing is asked of it. */
  readonly bound?: Bound;
}

export interface Series {
  readonly name: string;
  /** A value for each round. */
  readonly rounds: readonly number[];
}

export type Bound = { readonly atMost: number } | { readonly atLeast: number };
export type Unit = 'ms' | 'bytes' | 'commands' | 'round trips' | 'transactions' | 'entries' | 'turns' | 'turns/s';

/** What something costs as it grows. */
export interface Curve {
  readonly what: string;
  readonly unit: Unit;
  /** What grows. */
  readonly by: string;
  /** The cost should follow the size. Default: it should stay the same, and the chart has a logarithmic scale. */
  readonly proportional?: boolean;
  readonly points: readonly { readonly size: number; readonly rounds: readonly number[] }[];
}

/** A number that nothing is compared with. */
export interface Fact {
  readonly what: string;
  readonly value: string;
}
