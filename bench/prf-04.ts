import { Arena } from './arena.js';
import { type Benchmark, type Outcome } from './benchmark.js';
import { type Contestant, interleave } from './rounds.js';
import { type Sizes } from './sizes.js';
import { type Stores } from './stores.js';
import { type SystemName } from './turn-system.js';
import { type Load } from './witness.js';

const CONCURRENCY = 1;
/** The module's default for consecutive turns of one session before others get their turn. */
const FAIRNESS_BOUND = 16;

type Measure = 'time' | 'turns of the first';

export const prf04: Benchmark = {
  id: 'PRF-04',
  title: 'Fairness: a session with 1,000 queued turns, and 100 sessions with one behind it; concurrency 1',
  stores: ['redis'],
  run,
};

async function run(_: Stores, { rounds, lanes }: Sizes): Promise<Outcome> {
  const { hot, others } = lanes.unfair;
  const load: Load = [hot, ...Array.from({ length: others }, () => 1)];
  const arena = await Arena.open();
  try {
    const measured = await interleave(
      { rounds, slices: 1 },
      { groupmq: contestant(arena, 'groupmq', load), ours: contestant(arena, 'ours', load) },
    );
    const atMost = FAIRNESS_BOUND + CONCURRENCY;
    return {
      comparisons: [
        {
          what: `time until the last of the ${others} has ended, against groupmq`,
          unit: 'ms',
          base: { name: 'groupmq', rounds: measured.groupmq.time },
          measured: { name: 'ours', rounds: measured.ours.time },
          bound: { atMost: 0.2 },
        },
        {
          what: `turns of the one before the last of the ${others}`,
          unit: 'turns',
          base: { name: 'fairness bound and concurrency', rounds: measured.ours.time.map(() => atMost) },
          measured: { name: 'ours', rounds: measured.ours['turns of the first'] },
          bound: { atMost: 1 },
        },
      ],
    };
  } finally {
    await arena.close();
  }
}

function contestant(arena: Arena, system: SystemName, load: Load): Contestant<Measure> {
  const options = { system, url: arena.url, concurrency: CONCURRENCY, load };
  return {
    run: async () => {
      await arena.clear();
      const process = arena.process(system);
      await process.call('open', { ...options, role: 'submit' });
      await process.call('prepare');
      await process.call('submit', 0, 1);
      await process.call('submit', 1);
      await process.call('close');
      await process.call('open', { ...options, role: 'work' });
      const { ms, turnsOfTheFirst } = await process.call('besideTheFirst');
      await process.call('verify');
      await process.call('close');
      return { time: ms, 'turns of the first': turnsOfTheFirst };
    },
  };
}
