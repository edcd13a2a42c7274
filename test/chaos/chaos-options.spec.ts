import { UsageError } from '../support/command-line.js';
import { parseOptions } from './chaos-options.js';
import { SCENARIOS } from './scenarios/scenarios.js';

/** Formats a run, for example `kills on redis, seed 7`. */
function runsOf(...args: string[]): string[] {
  return (parseOptions(args) ?? []).map(({ scenario, store, seed }) => `${scenario.name} on ${store}, seed ${seed}`);
}

describe('parseOptions', () => {
  it('TRN-15 runs every scenario on each of its stores', () => {
    const runs = runsOf('--seed', '7');
    expect(runs).toHaveLength(SCENARIOS.reduce((sum, { stores }) => sum + stores.length, 0));
    expect(runs).toEqual(expect.arrayContaining(['kills on sqlite, seed 7', 'network on postgres, seed 7']));
  });

  it('TRN-15 runs each scenario once with --quick, and on another store with the next seed', () => {
    const runs = runsOf('--quick', '--seed', '1', '--seeds', '3');
    expect(new Set(runs).size).toBe(3 * SCENARIOS.length);
    const ofKills = runs.filter((run) => run.startsWith('kills')).map((run) => run.split(/ on |, /)[1]);
    expect(ofKills.sort()).toEqual(['postgres', 'redis', 'sqlite']);
  });

  it('TRN-15 runs only the given scenarios, with consecutive seeds', () => {
    expect(runsOf('--scenario', 'notifications', '--store', 'redis', '--seed', '7', '--seeds', '2')).toEqual([
      'notifications on redis, seed 7',
      'notifications on redis, seed 8',
    ]);
    expect(parseOptions(['--scenario', 'notifications', '--seconds', '9'])).toMatchObject([
      { seconds: 9 },
      { seconds: 9 },
    ]);
    expect(runsOf('--store', 'sqlite', '--seed', '1', '--quick').every((run) => run.includes('on sqlite'))).toBe(true);
  });

  it('TRN-15 uses a new seed each time, the same for all runs', () => {
    const seeds = [1, 2].map(() => new Set(parseOptions([])?.map(({ seed }) => seed)));
    expect(seeds.map(({ size }) => size)).toEqual([1, 1]);
    expect(seeds[0]).not.toEqual(seeds[1]);
  });

  it.each([
    [['--scenario', 'rain'], '--scenario must be one of kills, frozen, '],
    [['--store', 'mysql'], '--store must be one of redis, postgres, sqlite. Received: mysql.'],
    [['--scenario', 'notifications', '--store', 'sqlite'], '--scenario notifications does not support --store sqlite.'],
    [['--seed', '0'], '--seed must be an integer of at least 1. Received: 0.'],
    [['--seeds', '1.5'], '--seeds must be an integer of at least 1. Received: 1.5.'],
    [['--seconds', 'many'], '--seconds must be an integer of at least 1. Received: many.'],
    [['--speed', '3'], '--speed'],
    [['kills'], 'kills'],
  ])('TRN-15 rejects %j', (args, message) => {
    expect(() => parseOptions(args)).toThrow(UsageError);
    expect(() => parseOptions(args)).toThrow(message);
  });

  it.each(['--help', '-h'])('TRN-15 returns null for %s', (help) => {
    expect(parseOptions([help, '--quick'])).toBeNull();
  });
});
