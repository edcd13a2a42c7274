import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format } from 'prettier';
import { type Curve } from './benchmark.js';
import { curveChart, ratioChart } from './chart.js';
import { COMPARISON_HEAD, comparisonCells, quantity } from './report.js';
import { loadResults, type Result } from './results.js';
import { spreadOf } from './statistics.js';

const INTRODUCTION = `# Results

Written by \`npm run bench\`. [README.md](README.md) describes the method. Values are medians of the rounds. A ratio is the median of the
rounds' ratios, with the lowest and the highest. Only ratios are comparable, and differences of a few per cent are noise.`;

/** Writes the charts and the page from all results in the folder. @param page the path of the page */
export async function writePage(folder: string, page: string): Promise<void> {
  const results = loadResults(folder);
  const charts = basenameOf(folder);
  const sections = rowsOf(results).flatMap((ofRow) => section(folder, charts, ofRow));
  const text = [INTRODUCTION, ...environments(results), ...sections].join('\n\n');
  writeFileSync(page, await format(text, { parser: 'markdown', printWidth: 120 }));
}

function section(folder: string, charts: string, results: readonly Result[]): string[] {
  const [{ row, title }] = results;
  const chart = (name: string, svg: string, of: string): string => {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${name}.svg`), svg);
    return `![${of}](${charts}/${name}.svg)`;
  };
  const compared = results.filter(({ outcome }) => outcome.comparisons.length > 0);
  const facts = results.flatMap(({ store, outcome }) =>
    (outcome.facts ?? []).map(({ what, value }) => `- ${store}: ${what}: ${value}`),
  );
  return [
    `## ${row}`,
    `${title}.`,
    ...(compared.length > 0
      ? [comparisonTable(compared), chart(row.toLowerCase(), ratioChart(row, compared), `Ratios of ${row}`)]
      : []),
    ...curvesOf(results).flatMap((curves, i) => [
      curveTable(curves),
      chart(`${row.toLowerCase()}-${i + 1}`, curveChart(curves), `${curves[0].what}, by ${curves[0].by}`),
    ]),
    ...(facts.length > 0 ? [facts.join('\n')] : []),
  ];
}

function comparisonTable(results: readonly Result[]): string {
  const rows = results.flatMap(({ store, outcome }) =>
    outcome.comparisons.map((comparison) => [store, ...comparisonCells(comparison)]),
  );
  return table(['store', ...COMPARISON_HEAD], rows);
}

function curveTable(curves: readonly OfStore[]): string {
  const [{ what, by, points, unit }] = curves;
  const head = [`${what}, by ${by}`, ...points.map(({ size }) => size.toLocaleString('en'))];
  return table(
    head,
    curves.map(({ store, points: own }) => [
      store,
      ...own.map(({ rounds }) => quantity(spreadOf(rounds).median, unit)),
    ]),
  );
}

type OfStore = Curve & { readonly store: string };

/** Returns the same curve of each store. */
function curvesOf(results: readonly Result[]): OfStore[][] {
  const count = Math.max(0, ...results.map(({ outcome }) => outcome.curves?.length ?? 0));
  return Array.from({ length: count }, (_, i) =>
    results.flatMap(({ store, outcome }) => (outcome.curves?.[i] ? [{ ...outcome.curves[i], store }] : [])),
  );
}

function environments(results: readonly Result[]): string[] {
  const of = results.map(({ environment: { machine, node, day } }) => `- ${machine}; Node ${node}; ${day}`);
  const stores = results.map(({ environment }) => `- ${environment.store}`);
  return [[...new Set([...of, ...stores])].join('\n')];
}

function rowsOf(results: readonly Result[]): Result[][] {
  const rows = [...new Set(results.map(({ row }) => row))];
  // Rows of the specification come first.
  const ordered = [...rows.filter((row) => row.startsWith('PRF')), ...rows.filter((row) => !row.startsWith('PRF'))];
  return ordered.map((row) => results.filter((result) => result.row === row));
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function basenameOf(folder: string): string {
  return folder.split('/').filter(Boolean).at(-1) ?? '';
}
