import { createSessionStore, type Session } from 'nestjs-agent-sessions';
import { type AtomicSessionStoreAdapter } from 'nestjs-agent-sessions/adapter';
import { type Benchmark, type Outcome } from './benchmark.js';
import { expectSame } from './wrong-answer.error.js';
import { idOf, type Population, sessionOf } from './population.js';
import { type Contestant, interleave, timed } from './rounds.js';
import { type Sizes } from './sizes.js';
import { spreadOf } from './statistics.js';
import { type FilledStore, type Stores } from './stores.js';

const AT_MOST = 1.6;
const DAY_MS = 86_400_000;
const TTL_MS = 30 * DAY_MS;
/** The options of SessionStore.sweepStale. */
const BATCH = 500;

type Measure = 'sweep' | 'longest batch';
type Placement = 'scattered' | 'neighbours';

export const prf08: Benchmark = {
  id: 'PRF-08',
  title: 'sweepStale: 10,000 stale among 1,000,000 sessions against 10,000 among 20,000, in batches',
  stores: ['sqlite', 'postgres', 'redis'],
  run,
};

async function run(stores: Stores, { rounds, many, sweep }: Sizes): Promise<Outcome> {
  const [small, large] = [await stores.with(sweep.among), await stores.with(many)];
  const contestants = {
    small: sweepOf(small, sweep.stale, 'scattered'),
    scattered: sweepOf(large, sweep.stale, 'scattered'),
    neighbours: sweepOf(large, sweep.stale, 'neighbours'),
  };
  const measured = await interleave({ rounds, slices: 1 }, contestants);
  const base = `${sweep.stale.toLocaleString('en')} among ${sweep.among.toLocaleString('en')}`;
  const among = `${sweep.stale.toLocaleString('en')} among ${many.toLocaleString('en')}`;
  const bound = stores.name === 'sqlite' ? {} : { bound: { atMost: AT_MOST } };
  const compare = (what: Measure, placement: Placement) => ({
    what: `${what}, ${placement === 'scattered' ? 'stale sessions scattered' : 'stale sessions created in a row'}`,
    unit: 'ms' as const,
    base: { name: base, rounds: measured.small[what] },
    measured: { name: among, rounds: measured[placement][what] },
    ...(what === 'sweep' ? bound : {}),
  });
  const longest = spreadOf(measured.scattered['longest batch']).highest;
  return {
    comparisons: [
      compare('sweep', 'scattered'),
      compare('sweep', 'neighbours'),
      compare('longest batch', 'scattered'),
      compare('longest batch', 'neighbours'),
    ],
    facts: [
      { what: `longest single operation, a batch of ${BATCH}`, value: `${longest.toFixed(1)} ms` },
      { what: 'heap that grew from the first batch to the last', value: await heapGrowth(large, sweep.stale) },
    ],
  };
}

/** Runs everything in one slice, because two contestants share a store. */
function sweepOf(store: FilledStore, stale: number, placement: Placement): Contestant<Measure> {
  const chosen = choose(store.population, stale, placement);
  return {
    run: async () => {
      await makeStale(store, chosen);
      const batches: number[] = [];
      const sessions = createSessionStore({ adapter: timedBatches(store, batches) });
      let swept: Session[] = [];
      const sweep = await timed(async () => {
        swept = await sessions.sweepStale(TTL_MS);
      });
      await checkSwept(store, chosen, swept);
      await reactivate(store, chosen);
      return { sweep, 'longest batch': Math.max(...batches) };
    },
  };
}

/** Returns numbers of active sessions. */
function choose({ count }: Population, stale: number, placement: Placement): readonly number[] {
  const apart = placement === 'scattered' ? Math.floor(count / 2 / stale) : 1;
  return Array.from({ length: stale }, (_, i) => i * apart);
}

/** Longest idle first, in a random order, so that no two indexes have the same order. */
async function makeStale(store: FilledStore, chosen: readonly number[]): Promise<void> {
  const longAgo = Date.now() - 2 * TTL_MS;
  await updateAll(store, chosen, (n) => ({
    state: 'active',
    lastActivityAt: new Date(longAgo + ((n * 7919) % DAY_MS)).toISOString(),
  }));
  await store.tidy();
}

async function reactivate(store: FilledStore, chosen: readonly number[]): Promise<void> {
  await updateAll(store, chosen, (n) => {
    const { state, lastActivityAt } = sessionOf(n, store.population);
    return { state, lastActivityAt };
  });
}

async function updateAll(
  { adapter }: FilledStore,
  chosen: readonly number[],
  change: (n: number) => Partial<Session>,
): Promise<void> {
  for (let from = 0; from < chosen.length; from += BATCH) {
    const some = chosen.slice(from, from + BATCH);
    await Promise.all(some.map((n) => adapter.sessions.update(idOf(n), change(n))));
  }
}

async function checkSwept(
  { adapter }: FilledStore,
  chosen: readonly number[],
  swept: readonly Session[],
): Promise<void> {
  expectSame('sessions that were swept', swept.map(({ id }) => id).sort(), chosen.map(idOf).sort());
  const idle = swept.map(({ lastActivityAt }) => lastActivityAt);
  expectSame('order of the sweep', idle, [...idle].sort());
  for (const n of [chosen[0], chosen[chosen.length - 1]]) {
    const stored = await adapter.sessions.fetchById(idOf(n));
    expectSame(`state of ${idOf(n)}`, stored?.state, 'suspended');
  }
}

/** The store's sessions, recording the time of every batch of a sweep. */
function timedBatches({ adapter }: FilledStore, batches: number[]): AtomicSessionStoreAdapter {
  const sessions = adapter.sessions as AtomicSessionStoreAdapter;
  return new Proxy(sessions, {
    get: (target, name, receiver) => {
      if (name !== 'suspendStale') return Reflect.get(target, name, receiver) as unknown;
      return async (idleMs: number, limit: number): Promise<Session[]> => {
        let batch: Session[] = [];
        batches.push(await timed(async () => (batch = await sessions.suspendStale(idleMs, limit))));
        return batch;
      };
    },
  });
}

/** Sweeps one batch at a time and discards the sessions. */
async function heapGrowth(store: FilledStore, stale: number): Promise<string> {
  const chosen = choose(store.population, stale, 'scattered');
  await makeStale(store, chosen);
  const sessions = createSessionStore({ adapter: store.adapter.sessions });
  const heaps: number[] = [];
  for (let swept = BATCH; swept === BATCH;) {
    swept = (await sessions.sweepStale(TTL_MS, { maxSessions: BATCH })).length;
    globalThis.gc?.();
    heaps.push(process.memoryUsage().heapUsed);
  }
  await reactivate(store, chosen);
  const bytes = heaps[heaps.length - 1] - heaps[1];
  return `${(bytes / 1024).toFixed(0)} KB over ${heaps.length} batches`;
}
