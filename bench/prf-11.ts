import { Arena } from './arena.js';
import { type Benchmark, type Comparison, type Outcome } from './benchmark.js';
import { HostProcess } from './host-process.js';
import { type Contestant, interleave } from './rounds.js';
import { type ResumableHost } from './resumable-host.js';
import { type Sizes } from './sizes.js';
import { quantile, spreadOf } from './statistics.js';
import { type Stores } from './stores.js';
import { type StreamHost, type StreamOptions } from './stream-host.js';

/** The allowed lag, by `turns.events.batchMs`; `undefined` is its default. */
const SETTINGS = [
  { name: 'default', batchMs: undefined, allowedMs: 30 },
  { name: 'batchMs 5', batchMs: 5, allowedMs: 8 },
] as const;
type Setting = (typeof SETTINGS)[number]['name'];
const SLOWED = 1.05;
const PROGRAM = './stream-program.js';
const PEER = './resumable-program.js';

export const prf11: Benchmark = {
  id: 'PRF-11',
  title: 'Event stream: 200 tokens a second to 100 readers in another process',
  stores: ['redis', 'postgres'],
  run,
};

async function run(stores: Stores, sizes: Sizes): Promise<Outcome> {
  const { readers, tokens: count } = sizes.streams;
  const arena = await Arena.open();
  const store = stores.name === 'redis' ? arena.url : stores.address;
  const applications: Application[] = [];
  const [maker, reader] = [new HostProcess<ResumableHost>(PEER), new HostProcess<ResumableHost>(PEER)];
  let streams = 0;
  try {
    for (const [at, { batchMs }] of SETTINGS.entries()) {
      applications.push(await openApplication({ store, queue: arena.url, prefix: `streams${at}`, batchMs }));
    }
    await Promise.all([maker, reader].map((peer) => peer.call('open', arena.url)));
    const [usual] = applications;
    const measured = await interleave(
      { rounds: sizes.rounds, slices: 1 },
      {
        silent: {
          run: async () => {
            const turnId = await usual.web.call('submit', { count, emit: false });
            return { made: await usual.web.call('made', turnId), lag: 0 };
          },
        },
        ...(Object.fromEntries(
          SETTINGS.map(({ name }, at) => [name, { run: () => emit(applications[at], count, readers) }]),
        ) as Record<Setting, Contestant<'made' | 'lag'>>),
        // It stores nothing, and writes when a reader is connected.
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
    const processes = applications.flatMap(({ worker, web }) => [web, worker]);
    await Promise.all([...processes, maker, reader].map((process) => process.call('close')));
    return {
      comparisons: SETTINGS.flatMap(({ name, allowedMs }): Comparison[] => [
        {
          what: `lag of a token, p99, ${name}`,
          unit: 'ms',
          base: { name: 'allowed', rounds: measured[name].lag.map(() => allowedMs) },
          measured: { name: `${readers} readers`, rounds: measured[name].lag },
          bound: { atMost: 1 },
        },
        {
          what: `time that the handler takes for ${count.toLocaleString('en')} tokens, ${name}`,
          unit: 'ms',
          base: { name: 'emits nothing', rounds: measured.silent.made },
          measured: { name: `emits to ${readers} readers`, rounds: measured[name].made },
          bound: { atMost: SLOWED },
        },
        {
          what: `lag of a token, p99, ${name}, against resumable-stream`,
          unit: 'ms',
          base: { name: 'resumable-stream', rounds: measured.resumable.lag },
          measured: { name: 'ours', rounds: measured[name].lag },
        },
        {
          what: `time that making the tokens takes, ${name}, against resumable-stream`,
          unit: 'ms',
          base: { name: 'resumable-stream', rounds: measured.resumable.made },
          measured: { name: 'ours', rounds: measured[name].made },
        },
      ]),
      facts: SETTINGS.map(({ name }, at) => ({
        what: `tokens that are written together, ${name}`,
        value: (count / spreadOf(applications[at].batches).median).toFixed(1),
      })),
    };
  } finally {
    const processes = applications.flatMap(({ worker, web }) => [web, worker]);
    await Promise.all([...processes, maker, reader].map((process) => process.stop()));
    await arena.close();
  }
}

/** A process that runs turns and one that reads their events. */
interface Application {
  readonly worker: HostProcess<StreamHost>;
  readonly web: HostProcess<StreamHost>;
  /** The number of batches of each measured turn. */
  readonly batches: number[];
}

async function openApplication(options: Omit<StreamOptions, 'role'>): Promise<Application> {
  const [worker, web] = [new HostProcess<StreamHost>(PROGRAM), new HostProcess<StreamHost>(PROGRAM)];
  await worker.call('open', { ...options, role: 'work' });
  await web.call('open', { ...options, role: 'submit' });
  return { worker, web, batches: [] };
}

/** Streams a turn to readers in another process. */
async function emit(
  { worker, web, batches }: Application,
  count: number,
  readers: number,
): Promise<{ made: number; lag: number }> {
  const turnId = await web.call('submit', { count, emit: true });
  const lags = await web.call('read', turnId, readers, count);
  batches.push(await worker.call('verify', turnId, count));
  return { made: await web.call('made', turnId), lag: quantile(lags, 0.99) };
}
