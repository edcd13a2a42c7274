import { oneOf, parseArguments, toCount, UsageError } from '../support/command-line.js';
import { type Run } from './run.js';
import { type Scenario } from './scenarios/scenario.js';
import { SCENARIOS } from './scenarios/scenarios.js';
import { STORES } from './environment/place.js';

export const USAGE = `Runs applications under load, does them harm, and checks from what they wrote down that nothing was lost.

  npm run chaos -- [options]

  --scenario NAME  only this one
  --store NAME     only this one: ${STORES.join(', ')}
  --seed N         of load and faults (default: another one each time)
  --seeds N        this many seeds, from --seed on (default 1)
  --seconds N      of load and faults in each run (default 6)
  --quick          each scenario once, on one of its stores
  --help           this text

Scenarios:
${SCENARIOS.map(({ name, about, stores }) => `  ${name.padEnd(14)} ${about} (${stores.join(', ')})`).join('\n')}

Exit code: 0 when every guarantee held, 1 when not, 2 for wrong arguments.`;

/** @returns the requested runs; `null` if help is requested. @throws UsageError */
export function parseOptions(args: string[]): Run[] | null {
  const values = parse(args);
  if (values.help) return null;
  const scenarios = values.scenario === undefined ? SCENARIOS : [named(values.scenario)];
  const store = values.store === undefined ? undefined : oneOf(STORES, '--store', values.store);
  const first = toCount('--seed', values.seed) ?? Math.floor(Math.random() * 1_000_000);
  const seeds = Array.from({ length: toCount('--seeds', values.seeds) ?? 1 }, (_, index) => first + index);
  const seconds = toCount('--seconds', values.seconds) ?? 6;
  const runs = seeds.flatMap((seed) =>
    scenarios.flatMap((scenario, index) => {
      const stores = store === undefined ? scenario.stores : scenario.stores.filter((name) => name === store);
      // A different store for each scenario and each seed.
      const some = values.quick && stores.length > 0 ? [stores[(seed + index) % stores.length]] : stores;
      return some.map((name) => ({ scenario, store: name, seed, seconds }));
    }),
  );
  if (runs.length === 0)
    throw new UsageError(`--scenario ${values.scenario} does not support --store ${values.store}.`);
  return runs;
}

function named(name: string): Scenario {
  const names = SCENARIOS.map((scenario) => scenario.name);
  return SCENARIOS[names.indexOf(oneOf(names, '--scenario', name))];
}

function parse(args: string[]) {
  return parseArguments({
    args,
    options: {
      scenario: { type: 'string' },
      store: { type: 'string' },
      seed: { type: 'string' },
      seeds: { type: 'string' },
      seconds: { type: 'string' },
      quick: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  }).values;
}
