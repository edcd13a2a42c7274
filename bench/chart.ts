import { type Comparison, type Curve } from './benchmark.js';
import { draw } from './chart-library.js';
import { type Result } from './results.js';
import { isMet, ratioOf, spreadOf } from './statistics.js';

const WIDTH = 900;
const BAR_HEIGHT = 34;
const AROUND_BARS = 110;
const COLOURS = { met: '#4c8a5b', missed: '#b5483f', unbounded: '#8a93a0', bound: '#1f2937', spread: '#1f2937' };

/** Draws the ratios of a row on every store, with their spread and bound. */
export function ratioChart(title: string, results: readonly Result[]): string {
  const bars = results
    .flatMap(({ store, outcome }) => outcome.comparisons.map((comparison) => ({ store, comparison })))
    .reverse();
  const names = bars.map(({ store, comparison }) => `${store}: ${comparison.what}`);
  const ratios = bars.map(({ comparison }) => ratioOf(comparison));
  const options = {
    title: {
      text: title,
      subtext: 'ratio, with its spread over the rounds; the mark is the bound',
      textStyle: { fontSize: 14 },
    },
    grid: { left: 400, right: 40, top: 70, bottom: 30 },
    xAxis: { type: 'value', min: 0 },
    yAxis: { type: 'category', data: names },
    series: [
      {
        type: 'bar',
        barWidth: 14,
        data: bars.map(({ comparison }, i) => ({
          value: round(ratios[i].median),
          itemStyle: { color: colour(comparison) },
        })),
      },
      {
        // The spread: a line from the lowest to the highest ratio.
        type: 'scatter',
        data: [],
        markLine: {
          symbol: ['circle', 'circle'],
          symbolSize: 4,
          silent: true,
          lineStyle: { color: COLOURS.spread, type: 'solid', width: 1.5 },
          label: { show: false },
          data: ratios.map(({ lowest, highest }, i) => [{ coord: [round(lowest), i] }, { coord: [round(highest), i] }]),
        },
      },
      {
        type: 'scatter',
        symbol: 'rect',
        symbolSize: [3, 26],
        itemStyle: { color: COLOURS.bound },
        data: bars.flatMap(({ comparison }, i) => boundOf(comparison).map((bound) => [bound, i])),
      },
    ],
  };
  return draw(options, WIDTH, AROUND_BARS + BAR_HEIGHT * bars.length);
}

/** Draws one curve on every store: medians over the size. */
export function curveChart(curves: readonly (Curve & { readonly store: string })[]): string {
  const [{ what, by, unit, proportional = false }] = curves;
  return draw(
    {
      title: { text: `${what}, by ${by}`, textStyle: { fontSize: 14 } },
      legend: { top: 32 },
      grid: { left: 70, right: 40, top: 85, bottom: 50 },
      xAxis: { type: proportional ? 'value' : 'log', name: by, nameLocation: 'middle', nameGap: 28 },
      yAxis: { type: 'value', name: unit, min: 0 },
      series: curves.map(({ store, points }) => ({
        type: 'line',
        name: store,
        data: points.map(({ size, rounds }) => [size, round(spreadOf(rounds).median)]),
      })),
    },
    WIDTH,
    380,
  );
}

function colour(comparison: Comparison): string {
  const met = isMet(comparison);
  if (met === undefined) return COLOURS.unbounded;
  return met ? COLOURS.met : COLOURS.missed;
}

function boundOf({ bound }: Comparison): number[] {
  return bound ? Object.values(bound) : [];
}

function round(value: number): number {
  return Number(value.toPrecision(3));
}
