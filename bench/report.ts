import Table from 'cli-table3';
import { type Comparison, type Curve, type Series, type Unit } from './benchmark.js';
import { boundText, isMet, ratioOf, spreadOf } from './statistics.js';
import { type Result } from './results.js';

export const COMPARISON_HEAD = ['what', 'against', 'measured', 'ratio', 'spread', 'bound', ''] as const;

/** Formats medians, their base, and the ratio with its spread over the rounds. */
export function comparisonCells(comparison: Comparison): string[] {
  const { what, unit, base, measured, bound } = comparison;
  const ratio = ratioOf(comparison);
  return [
    what,
    seriesText(base, unit),
    seriesText(measured, unit),
    ratio.median.toFixed(2),
    `${ratio.lowest.toFixed(2)} to ${ratio.highest.toFixed(2)}`,
    bound ? boundText(bound) : '',
    verdict(comparison),
  ];
}

export function curveCells({ unit, points }: Curve): string[] {
  return points.map(({ size, rounds }) => `${size.toLocaleString('en')}: ${quantity(spreadOf(rounds).median, unit)}`);
}

/** Formats results for the terminal. */
export function resultText({ row, store, title, outcome }: Result): string {
  const { comparisons, curves = [], facts = [] } = outcome;
  const parts = [`\n${row} on ${store}: ${title}`];
  if (comparisons.length > 0) {
    const table = new Table({ head: [...COMPARISON_HEAD], style: { head: [], border: [], compact: true } });
    table.push(...comparisons.map(comparisonCells));
    parts.push(table.toString());
  }
  for (const curve of curves) parts.push(`${curve.what}, by ${curve.by}: ${curveCells(curve).join(', ')}`);
  for (const { what, value } of facts) parts.push(`${what}: ${value}`);
  return parts.join('\n');
}

export function quantity(value: number, unit: Unit): string {
  if (unit === 'ms') return `${value.toLocaleString('en', { maximumSignificantDigits: 3 })} ms`;
  const number = value.toLocaleString('en', { maximumFractionDigits: value < 10 ? 1 : 0 });
  if (unit === 'turns/s') return `${number}/s`;
  return unit === 'bytes' ? `${number} B` : number;
}

function seriesText({ name, rounds }: Series, unit: Unit): string {
  return `${name}: ${quantity(spreadOf(rounds).median, unit)}`;
}

function verdict(comparison: Comparison): string {
  const met = isMet(comparison);
  if (met === undefined) return '';
  return met ? 'met' : 'NOT MET';
}
