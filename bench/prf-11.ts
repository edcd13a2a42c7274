import { Arena } from './arena.js';
import { type Benchmark, type Outcome } from './benchmark.js';
import { HostProcess } from './host-process.js';
import { interleave } from './rounds.js';
import { type Sizes } from './sizes.js';
import { quantile, spreadOf } from './statistics.js';
import { type Stores } from './stores.js';
import { type StreamHost } from './stream-host.js';

const LAG_MS = 250;
const SLOWED = 1.05;
const PROGRAM = './stream-program.js';

export const prf11: Benchmark = {
  id: 'PRF-11',
  title: 'Event stream: 200 tokens a second to 100 readers in another process',
  stores: ['redis'],
  run,
};

async function run(_: Stores, { rounds, streams }: Sizes): Promise<Outcome> {
  const { readers, tokens: count } = streams;
  const arena = await Arena.open();
  const [worker, web] = [new HostProcess<StreamHost>(PROGRAM), new HostProcess<StreamHost>(PROGRAM)];
  const batches: number[] = [];
  try {
    await worker.call('open', { url: arena.url, role: 'work' });
    await web.call('open', { url: arena.url, role: 'submit' });
    const measured = await interleave(
      { rounds, slices: 1 },
      {
        silent: {
          run: async () => {
            const turnId = await web.call('submit', { count, emit: false });
            return { made: await web.call('made', turnId), lag: 0 };
          },
        },
        emitting: {
          run: async () => {
            const turnId = await web.call('submit', { count, emit: true });
            const lags = await web.call('read', turnId, readers, count);
            batches.push(await worker.call('verify', turnId, count));
            return { made: await web.call('made', turnId), lag: quantile(lags, 0.99) };
          },
        },
      },
    );
    await web.call('close');
    await worker.call('close');
    return {
      comparisons: [
        {
          what: 'lag of a token, p99',
          unit: 'ms',
          base: { name: 'allowed', rounds: measured.emitting.lag.map(() => LAG_MS) },
          measured: { name: `${readers} readers`, rounds: measured.emitting.lag },
          bound: { atMost: 1 },
        },
        {
          what: `time that the handler takes for ${count.toLocaleString('en')} tokens`,
          unit: 'ms',
          base: { name: 'emits nothing', rounds: measured.silent.made },
          measured: { name: `emits to ${readers} readers`, rounds: measured.emitting.made },
          bound: { atMost: SLOWED },
        },
      ],
      facts: [{ what: 'tokens that are written together', value: (count / spreadOf(batches).median).toFixed(1) }],
    };
  } finally {
    await Promise.all([worker.stop(), web.stop()]);
    await arena.close();
  }
}
