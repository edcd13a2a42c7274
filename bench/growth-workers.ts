import { type Benchmark, type Outcome } from './benchmark.js';
import { HostProcess } from './host-process.js';
import { type Contestant, interleave } from './rounds.js';
import { type Sizes } from './sizes.js';
import { type Stores } from './stores.js';
import { type WorkerHost } from './worker-host.js';

const PROGRAM = './worker-program.js';

export const growthOfWorkers: Benchmark = {
  id: 'GROWTH-WORKERS',
  title: 'Turns that wait 50 ms, in 1, 2 and 4 processes that run 16 at once each, asked for by another one',
  stores: ['postgres', 'redis'],
  run,
};

async function run(stores: Stores, { rounds, growth: { workers, callers } }: Sizes): Promise<Outcome> {
  const caller = new HostProcess<WorkerHost>(PROGRAM);
  const others = Array.from({ length: Math.max(...workers) }, () => new HostProcess<WorkerHost>(PROGRAM));
  const place = { store: stores.name as 'redis' | 'postgres', url: stores.address };
  let slices = 0;
  const contestants: Record<string, Contestant<'turns a second'>> = {};
  for (const count of workers) {
    contestants[count] = {
      run: async () => {
        slices += 1;
        const options = { ...place, prefix: `workers_${slices}_` };
        const working = others.slice(0, count);
        await caller.call('open', { ...options, role: 'submit' });
        await caller.call('prepare', callers.count);
        await Promise.all(working.map((worker) => worker.call('open', { ...options, role: 'work' })));
        const ms = await caller.call('closedLoop', callers.turns);
        await caller.call('verify', callers.turns);
        await Promise.all([caller, ...working].map((process) => process.call('close')));
        return { 'turns a second': ((callers.count * callers.turns) / ms) * 1000 };
      },
    };
  }
  try {
    const measured = await interleave({ rounds, slices: 1 }, contestants);
    return {
      comparisons: [],
      curves: [
        {
          what: 'turns a second',
          unit: 'turns/s',
          by: 'processes that run turns',
          proportional: true,
          points: workers.map((size) => ({ size, rounds: measured[size]['turns a second'] })),
        },
      ],
    };
  } finally {
    await Promise.all([caller, ...others].map((process) => process.stop()));
  }
}
