import { type Sizes } from './sizes.js';
import { type StoreName, type Stores } from './stores.js';

/** The measurement of a row of the specification, or of a chart. */
export interface Benchmark {
  /** The row, as on the command line. */
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
  /** The bound of the ratio. Default: none. */
  readonly bound?: Bound;
}

export interface Series {
  readonly name: string;
  /** One value per round. */
  readonly rounds: readonly number[];
}

export type Bound = { readonly atMost: number } | { readonly atLeast: number };
export type Unit = 'ms' | 'bytes' | 'commands' | 'round trips' | 'transactions' | 'entries' | 'turns' | 'turns/s';

/** A cost over a size. */
export interface Curve {
  readonly what: string;
  readonly unit: Unit;
  /** The quantity that grows. */
  readonly by: string;
  /** Whether the cost should follow the size. Default: it should stay the same, and the chart has a logarithmic scale. */
  readonly proportional?: boolean;
  readonly points: readonly { readonly size: number; readonly rounds: readonly number[] }[];
}

/** A number without a comparison. */
export interface Fact {
  readonly what: string;
  readonly value: string;
}
