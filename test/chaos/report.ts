import Table from 'cli-table3';
import { type RunResult } from './run.js';

/** Formats the result of a run in one line. */
export function lineOf({ scenario, store, seed, verdict, failures }: RunResult): string {
  const { turns, violations, longestStallMs } = verdict;
  const bad = violations.length + failures.length;
  const what = `${scenario.name} on ${store}, seed ${seed}: ${turns} turns, longest stall ${longestStallMs} ms`;
  return bad === 0 ? `ok    ${what}` : `WRONG ${what}, ${bad} ${bad === 1 ? 'violation' : 'violations'}`;
}

/** Formats the details of a failed run. */
export function complaintOf({ scenario, store, seed, seconds, verdict, failures, folder }: RunResult): string {
  const shown = verdict.violations.slice(0, 10).map(({ rule, message }) => `  ${rule}: ${message}`);
  const more = verdict.violations.length - shown.length;
  return [
    ...shown,
    ...(more > 0 ? [`  and ${more} more`] : []),
    ...failures.map(({ message }) => `  ${message}`),
    `  The histories are in ${folder}; again:`,
    `  npm run chaos -- --scenario ${scenario.name} --store ${store} --seed ${seed} --seconds ${seconds}`,
  ].join('\n');
}

/** Formats a table of all runs, with the seeds of a scenario on a store combined. */
export function tableOf(results: readonly RunResult[]): string {
  const table = new Table({
    head: ['scenario', 'store', 'runs', 'turns', 'attempts', 'faults', 'longest stall', 'violations'],
    colAligns: ['left', 'left', 'right', 'right', 'right', 'right', 'right', 'right'],
    style: { head: [], border: [] },
  });
  const groups = new Map<string, RunResult[]>();
  for (const result of results) {
    const name = `${result.scenario.name} ${result.store}`;
    groups.set(name, [...(groups.get(name) ?? []), result]);
  }
  for (const group of groups.values()) {
    const sum = (count: (result: RunResult) => number): number =>
      group.reduce((total, result) => total + count(result), 0);
    table.push([
      group[0].scenario.name,
      group[0].store,
      group.length,
      sum(({ verdict }) => verdict.turns),
      sum(({ verdict }) => verdict.attempts),
      sum(({ verdict }) => verdict.faults),
      `${Math.max(...group.map(({ verdict }) => verdict.longestStallMs))} ms`,
      sum(({ verdict, failures }) => verdict.violations.length + failures.length),
    ]);
  }
  return table.toString();
}
