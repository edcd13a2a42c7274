import { Arena } from './arena.js';
import { type Benchmark, type Curve, type Outcome } from './benchmark.js';
import { HostProcess } from './host-process.js';
import { type Contestant, interleave } from './rounds.js';
import { type Sizes } from './sizes.js';
import { quantile } from './statistics.js';
import { type Stores } from './stores.js';
import { type StreamHost } from './stream-host.js';

const PROGRAM = './stream-program.js';

type Measure = 'lag' | 'made';

export const growthOfReaders: Benchmark = {
  id: 'GROWTH-READERS',
  title: 'A stream of 200 tokens a second, as more and more read it in another process',
  stores: ['redis'],
  run,
};

async function run(_: Stores, { rounds, growth: { readers, tokens } }: Sizes): Promise<Outcome> {
  const arena = await Arena.open();
  const [worker, web] = [new HostProcess<StreamHost>(PROGRAM), new HostProcess<StreamHost>(PROGRAM)];
  try {
    const options = { store: arena.url, queue: arena.url, prefix: 'readers' };
    await worker.call('open', { ...options, role: 'work' });
    await web.call('open', { ...options, role: 'submit' });
    const contestants: Record<string, Contestant<Measure>> = {};
    for (const count of readers) {
      contestants[count] = {
        run: async () => {
          const turnId = await web.call('submit', { count: tokens, emit: true });
          const lags = await web.call('read', turnId, count, tokens);
          await worker.call('verify', turnId, tokens);
          return { lag: quantile(lags, 0.99), made: (await web.call('made', turnId)) / tokens };
        },
      };
    }
    const measured = await interleave({ rounds, slices: 1 }, contestants);
    await web.call('close');
    await worker.call('close');
    const curve = (what: string, measure: Measure): Curve => ({
      what,
      unit: 'ms',
      by: 'readers of a stream',
      points: readers.map((size) => ({ size, rounds: measured[size][measure] })),
    });
    return {
      comparisons: [],
      curves: [curve('lag of a token, p99', 'lag'), curve('time a token takes the handler', 'made')],
    };
  } finally {
    await Promise.all([worker.stop(), web.stop()]);
    await arena.close();
  }
}
