import { Arena } from './arena.js';
import { type Benchmark, type Comparison, type Fact, type Outcome } from './benchmark.js';
import { type Contestant, interleave } from './rounds.js';
import { type Sizes } from './sizes.js';
import { spreadOf } from './statistics.js';
import { type Stores } from './stores.js';
import { SYSTEM_NAMES, type SystemName } from './turn-system.js';
import { type Load } from './witness.js';

const CONCURRENCIES = [16, 64];

type Kind = 'drain' | 'live' | 'closed loop';
type Measure = 'turns a second' | 'script calls a turn';

const KINDS: Readonly<Record<Kind, { readonly bullmq: number; readonly groupmq: number }>> = {
  drain: { bullmq: 1.0, groupmq: 1.1 },
  live: { bullmq: 1.0, groupmq: 1.1 },
  'closed loop': { bullmq: 0.5, groupmq: 1.2 },
};

export const prf01: Benchmark = {
  id: 'PRF-01',
  title: 'Ordered turns through Redis and BullMQ against plain BullMQ and groupmq: 1,000 sessions with 10 turns each',
  stores: ['redis'],
  run,
};

async function run(_: Stores, { rounds, lanes }: Sizes): Promise<Outcome> {
  const load: Load = Array.from({ length: lanes.sessions }, () => lanes.turns);
  const arena = await Arena.open();
  const comparisons: Comparison[] = [];
  const facts: Fact[] = [];
  try {
    for (const [kind, bounds] of Object.entries(KINDS) as [Kind, (typeof KINDS)[Kind]][]) {
      for (const concurrency of CONCURRENCIES) {
        const contestants = Object.fromEntries(
          SYSTEM_NAMES.map((name) => [name, contestant(arena, name, kind, concurrency, load)]),
        ) as Record<SystemName, Contestant<Measure>>;
        const measured = await interleave({ rounds, slices: 1 }, contestants);
        const what = `${kind}, concurrency ${concurrency}`;
        for (const peer of ['bullmq', 'groupmq'] as const) {
          comparisons.push({
            what: `${what}, against ${peer}`,
            unit: 'turns/s',
            base: { name: peer, rounds: measured[peer]['turns a second'] },
            measured: { name: 'ours', rounds: measured.ours['turns a second'] },
            bound: { atLeast: bounds[peer] },
          });
        }
        const calls = SYSTEM_NAMES.map((name) => `${name} ${callsOf(measured[name])}`).join(', ');
        facts.push({ what: `script calls a turn, ${what}`, value: calls });
      }
    }
  } finally {
    await arena.close();
  }
  return { comparisons, facts };
}

function callsOf(measured: Record<Measure, readonly number[]>): string {
  return spreadOf(measured['script calls a turn']).median.toFixed(1);
}

function contestant(
  arena: Arena,
  system: SystemName,
  kind: Kind,
  concurrency: number,
  load: Load,
): Contestant<Measure> {
  const turns = load.reduce((sum, each) => sum + each, 0);
  const options = { system, url: arena.url, concurrency, load };
  return {
    run: async () => {
      await arena.clear();
      const process = arena.process(system);
      await process.call('open', { ...options, role: kind === 'drain' ? 'submit' : 'both' });
      await process.call('prepare');
      const before = await arena.scriptCalls();
      if (kind === 'drain') {
        await process.call('submit');
        await process.call('close');
        await process.call('open', { ...options, role: 'work' });
      }
      const ms = await process.call(METHODS[kind]);
      const calls = (await arena.scriptCalls()) - before;
      await process.call('verify');
      await process.call('close');
      return { 'turns a second': (turns / ms) * 1000, 'script calls a turn': calls / turns };
    },
  };
}

const METHODS = { drain: 'drain', live: 'submitAndDrain', 'closed loop': 'closedLoop' } as const;
