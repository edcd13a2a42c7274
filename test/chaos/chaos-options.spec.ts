import { UsageError } from '../support/command-line.js';
import { parseOptions } from './chaos-options.js';
import { SCENARIOS } from './scenarios/scenarios.js';

/** As `kills on redis, seed 7`. */
function runsOf(...args: string[]): string[] {
  return (parseOptions(args) ?? []).map(({ scenario, store, seed }) => `${scenario.name} on ${store}, seed ${seed}`);
}

describe('parseOptions', () => {
  it('TRN-15 runs every scenario on each of its stores', () => {
    const runs = runsOf('--seed', '7');
    expect(runs).toHaveLength(SCENARIOS.reduce((sum, { stores }) => sum + stores.length, 0));
    expect(runs).toEqual(expect.arrayContaining(['kills on sqlite, seed 7', 'network on postgres, seed 7']));
  });

  it('TRN-15 runs each scenario once when it must be quick, and on another store with the next seed', () => {
    const runs = runsOf('--quick', '--seed', '1', '--seeds', '3');
    expect(new Set(runs).size).toBe(3 * SCENARIOS.length);
    const ofKills = runs.filter((run) => run.startsWith('kills')).map((run) => run.split(/ on |, /)[1]);
    expect(ofKills.sort()).toEqual(['postgres', 'redis', 'sqlite']);
  });

  it('TRN-15 runs only what is named, with one seed after the other', () => {
    expect(runsOf('--scenario', 'rings', '--store', 'redis', '--seed', '7', '--seeds', '2')).toEqual([
      'rings on redis, seed 7',
      'rings on redis, seed 8',
    ]);
    expect(parseOptions(['--scenario', 'rings', '--seconds', '9'])).toMatchObject([{ seconds: 9 }, { seconds: 9 }]);
    expect(runsOf('--store', 'sqlite', '--seed', '1', '--quick').every((run) => run.includes('on sqlite'))).toBe(true);
  });

  it('TRN-15 has another seed each time, which is one for all runs', () => {
    const seeds = [1, 2].map(() => new Set(parseOptions([])?.map(({ seed }) => seed)));
    expect(seeds.map(({ size }) => size)).toEqual([1, 1]);
    expect(seeds[0]).not.toEqual(seeds[1]);
  });

  it.each([
    [['--scenario', 'rain'], '--scenario is rain; it must be one of kills, frozen, '],
    [['--store', 'mysql'], '--store is mysql; it must be one of redis, postgres, sqlite.'],
    [['--scenario', 'rings', '--store', 'sqlite'], 'rings is not for sqlite.'],
    [['--seed', '0'], '--seed is 0; it must be an integer of 1 or more.'],
    [['--seeds', '1.5'], '--seeds is 1.5; it must be'],
    [['--seconds', 'many'], '--seconds is many; it must be'],
    [['--speed', '3'], '--speed'],
    [['kills'], 'kills'],
  ])('TRN-15 refuses %j', (args, message) => {
    expect(() => parseOptions(args)).toThrow(UsageError);
    expect(() => parseOptions(args)).toThrow(message);
  });

  it.each(['--help', '-h'])('TRN-15 gives help for %s', (help) => {
    expect(parseOptions([help, '--quick'])).toBeNull();
  });
});
