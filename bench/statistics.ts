import { type Bound, type Comparison } from './benchmark.js';

export interface Spread {
  readonly median: number;
  readonly lowest: number;
  readonly highest: number;
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const median = (sorted[Math.ceil(middle) - 1] + sorted[Math.floor(middle)]) / 2;
  return { median, lowest: sorted[0], highest: sorted[sorted.length - 1] };
}

/** @param share the share of values below the result: 0.5 for the median */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

/** Returns the ratio of each round, because a disturbance of a round affects both contestants. */
export function ratioOf({ base, measured }: Comparison): Spread {
  return spreadOf(
    measured.rounds.map((value, round) => (value === base.rounds[round] ? 1 : value / base.rounds[round])),
  );
}

/** Whether the median is within the bound; `undefined` without a bound. */
export function isMet(comparison: Comparison): boolean | undefined {
  const { bound } = comparison;
  if (!bound) return undefined;
  const { median } = ratioOf(comparison);
  return 'atMost' in bound ? median <= bound.atMost : median >= bound.atLeast;
}

export function boundText(bound: Bound): string {
  return 'atMost' in bound ? `≤ ${bound.atMost}` : `≥ ${bound.atLeast}`;
}
