import { type Benchmark, type Comparison, type Outcome } from './benchmark.js';
import { HostProcess } from './host-process.js';
import { type JobHost } from './job-host.js';
import { type JobSystemName } from './open-job-system.js';
import { type Contestant, interleave } from './rounds.js';
import { type Sizes } from './sizes.js';
import { type Stores } from './stores.js';

const OURS = 'ours on PostgreSQL';
const PEER = 'DBOS';

export const peerDbos: Benchmark = {
  id: 'PEER-DBOS',
  title:
    'The whole job of PRF-02 on a partitioned queue of DBOS, which looks for work and results every 10 ms, and ours',
  stores: ['postgres'],
  run,
};

async function run({ address }: Stores, { rounds, peers }: Sizes): Promise<Outcome> {
  const processes: Readonly<Record<string, HostProcess<JobHost>>> = {
    [OURS]: new HostProcess<JobHost>('./job-program.js'),
    [PEER]: new HostProcess<JobHost>('./job-program.js'),
  };
  const comparisons: Comparison[] = [];
  let slices = 0;
  const contestant = (system: JobSystemName, concurrency: number): Contestant<'turns a second'> => ({
    run: async () => {
      const process = processes[system];
      slices += 1;
      const places = { database: address, redis: '' };
      await process.call('open', { system, places, concurrency, prefix: `dbos${slices}`, turns: peers.turns + 1 });
      const ms = await process.call('run');
      await process.call('verify');
      await process.call('close');
      return { 'turns a second': ((concurrency * peers.turns) / ms) * 1000 };
    },
  });
  try {
    for (const concurrency of [1, peers.sessions]) {
      const measured = await interleave(
        { rounds, slices: 1 },
        { [PEER]: contestant(PEER, concurrency), [OURS]: contestant(OURS, concurrency) },
      );
      comparisons.push({
        what: `callers that wait for each answer: ${concurrency}`,
        unit: 'turns/s',
        base: { name: PEER, rounds: measured[PEER]['turns a second'] },
        measured: { name: 'ours', rounds: measured[OURS]['turns a second'] },
      });
    }
  } finally {
    await Promise.all(Object.values(processes).map((process) => process.stop()));
  }
  return { comparisons };
}
