import { Arena } from './arena.js';
import { type Benchmark, type Outcome } from './benchmark.js';
import { HostProcess } from './host-process.js';
import { interleave } from './rounds.js';
import { type ResumableHost } from './resumable-host.js';
import { type Sizes } from './sizes.js';
import { quantile, spreadOf } from './statistics.js';
import { type Stores } from './stores.js';
import { type StreamHost } from './stream-host.js';

const LAG_MS = 250;
const SLOWED = 1.05;
const PROGRAM = './stream-program.js';
const PEER = './resumable-program.js';

export const prf11: Benchmark = {
  id: 'PRF-11',
  title: 'Event stream: 200 tokens a second to 100 readers in another process',
  stores: ['redis'],
  run,
};

async function run(_: Stores, sizes: Sizes): Promise<Outcome> {
  const { readers, tokens: count } = sizes.streams;
  const arena = await Arena.open();
  const [worker, web] = [new HostProcess<StreamHost>(PROGRAM), new HostProcess<StreamHost>(PROGRAM)];
  const [maker, reader] = [new HostProcess<ResumableHost>(PEER), new HostProcess<ResumableHost>(PEER)];
  let streams = 0;
  const batches: number[] = [];
  try {
    await worker.call('open', { url: arena.url, role: 'work' });
    await web.call('open', { url: arena.url, role: 'submit' });
    await Promise.all([maker, reader].map((peer) => peer.call('open', arena.url)));
    const measured = await interleave(
      { rounds: sizes.rounds, slices: 1 },
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
        // It stores nothing, and writes when a reader is there.
        resumable: {
          run: async () => {
            streams += 1;
            const streamId = `stream-${streams}`;
            await maker.call('make', streamId, count);
            const lags = await reader.call('read', streamId, readers, count);
            return { made: await maker.call('finished'), lag: quantile(lags, 0.99) };
          },
        },
      },
    );
    await Promise.all([web, worker, maker, reader].map((process) => process.call('close')));
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
        {
          what: 'lag of a token, p99, against resumable-stream',
          unit: 'ms',
          base: { name: 'resumable-stream', rounds: measured.resumable.lag },
          measured: { name: 'ours', rounds: measured.emitting.lag },
        },
        {
          what: 'time that making the tokens takes, against resumable-stream',
          unit: 'ms',
          base: { name: 'resumable-stream', rounds: measured.resumable.made },
          measured: { name: 'ours', rounds: measured.emitting.made },
        },
      ],
      facts: [{ what: 'tokens that are written together', value: (count / spreadOf(batches).median).toFixed(1) }],
    };
  } finally {
    await Promise.all([worker, web, maker, reader].map((process) => process.stop()));
    await arena.close();
  }
}
