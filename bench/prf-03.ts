import { Arena } from './arena.js';
import { type Benchmark, type Comparison, type Outcome } from './benchmark.js';
import { type Contestant, interleave } from './rounds.js';
import { type Sizes } from './sizes.js';
import { quantile } from './statistics.js';
import { type Stores } from './stores.js';
import { SYSTEM_NAMES, type SystemName } from './turn-system.js';
import { type Load } from './witness.js';

const CONCURRENCY = 16;

type Measure = 'p50' | 'p99';

export const prf03: Benchmark = {
  id: 'PRF-03',
  title: 'From submit to the result at the caller, which is another process than the worker; nothing else runs',
  stores: ['redis'],
  run,
};

async function run(_: Stores, { rounds, lanes }: Sizes): Promise<Outcome> {
  const { sessions, turns } = lanes.idle;
  const load: Load = Array.from({ length: sessions }, () => turns);
  const arena = await Arena.open();
  try {
    const contestants = Object.fromEntries(SYSTEM_NAMES.map((name) => [name, contestant(arena, name, load)])) as Record<
      SystemName,
      Contestant<Measure>
    >;
    const measured = await interleave({ rounds, slices: 1 }, contestants);
    const compare = (what: Measure, peer: 'bullmq' | 'groupmq', atMost?: number): Comparison => ({
      what: `${what}, against ${peer}`,
      unit: 'ms',
      base: { name: peer, rounds: measured[peer][what] },
      measured: { name: 'ours', rounds: measured.ours[what] },
      ...(atMost === undefined ? {} : { bound: { atMost } }),
    });
    return {
      comparisons: [
        compare('p50', 'bullmq', 1.3),
        compare('p99', 'bullmq', 1.5),
        compare('p50', 'groupmq'),
        compare('p99', 'groupmq', 0.1),
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
      const [caller, worker] = [arena.process(`${system}, caller`), arena.process(system)];
      await caller.call('open', { ...options, role: 'submit' });
      await caller.call('prepare');
      await worker.call('open', { ...options, role: 'work' });
      const latencies = await caller.call('latencies');
      await worker.call('verify');
      await caller.call('close');
      await worker.call('close');
      return { p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99) };
    },
  };
}
