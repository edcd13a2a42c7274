import { join } from 'node:path';
import { type Benchmark, type Comparison, type Outcome } from './benchmark.js';
import { HostProcess } from './host-process.js';
import { type JobHost } from './job-host.js';
import { type JobSystemName } from './open-job-system.js';
import { type Contestant, interleave } from './rounds.js';
import { type Sizes } from './sizes.js';
import { type StoreName, type Stores } from './stores.js';
import { redis } from '../test/support/services/redis.js';
import { startPrivateService } from '../test/support/services/services.js';

const CONCURRENCIES = [1, 8, 32] as const;
type Concurrency = (typeof CONCURRENCIES)[number];

/** Two or more systems that do the same. The bounds apply to each of ours against the peer. */
interface Match {
  readonly peer: JobSystemName;
  readonly ours: Partial<Record<JobSystemName, Readonly<Record<Concurrency, number>>>>;
}

const MATCHES: Partial<Record<StoreName, Match>> = {
  postgres: {
    peer: 'BullMQ and PostgresSaver',
    ours: {
      'ours on PostgreSQL': { 1: 1.8, 8: 3, 32: 3 },
      'ours on PostgreSQL with BullMQ': { 1: 1.5, 8: 1.5, 32: 1.2 },
    },
  },
  sqlite: { peer: 'p-queue and SqliteSaver', ours: { 'ours on SQLite': { 1: 0.9, 8: 2, 32: 2 } } },
  mariadb: { peer: 'TypeORM transactions', ours: { 'ours on MariaDB': { 1: 1.5, 8: 1.5, 32: 1.5 } } },
};

export const prf02: Benchmark = {
  id: 'PRF-02',
  title: 'The whole job: an ordered turn, a checkpoint of 5 KB and two messages stored, the result at the caller',
  stores: ['postgres', 'sqlite', 'mariadb'],
  run,
};

async function run(stores: Stores, { rounds, jobs }: Sizes): Promise<Outcome> {
  const match = MATCHES[stores.name]!;
  const queueServer = await startPrivateService(redis);
  const processes = new Map<JobSystemName, HostProcess<JobHost>>();
  const comparisons: Comparison[] = [];
  let slices = 0;
  const contestant = (system: JobSystemName, concurrency: Concurrency): Contestant<'turns a second'> => ({
    run: async () => {
      const process = processes.get(system) ?? new HostProcess<JobHost>('./job-program.js');
      processes.set(system, process);
      slices += 1;
      const turns = jobs[concurrency];
      const places = { database: databaseOf(stores, system), redis: queueServer.url };
      await process.call('open', { system, places, concurrency, prefix: `job${slices}`, turns: turns + 1 });
      const ms = await process.call('run');
      await process.call('verify');
      await process.call('close');
      return { 'turns a second': ((concurrency * turns) / ms) * 1000 };
    },
  });
  try {
    const names = [match.peer, ...Object.keys(match.ours)] as JobSystemName[];
    for (const concurrency of CONCURRENCIES) {
      const contestants = Object.fromEntries(names.map((name) => [name, contestant(name, concurrency)]));
      const measured = await interleave<string, 'turns a second'>({ rounds, slices: 1 }, contestants);
      for (const [name, bounds] of Object.entries(match.ours)) {
        comparisons.push({
          what: `${name}, concurrency ${concurrency}`,
          unit: 'turns/s',
          base: { name: match.peer, rounds: measured[match.peer]['turns a second'] },
          measured: { name: 'ours', rounds: measured[name]['turns a second'] },
          bound: { atLeast: bounds[concurrency] },
        });
      }
    }
  } finally {
    await Promise.all([...processes.values()].map((process) => process.stop()));
    await queueServer.stop();
  }
  return { comparisons };
}

/** Returns a file per system; on a server, each has its own tables. */
function databaseOf({ name, address }: Stores, system: JobSystemName): string {
  return name === 'sqlite' ? join(address, `${system}.db`) : address;
}
