import { createSessionStore, defaultAffinityResolver, type Session } from 'nestjs-agent-sessions';
import { type Benchmark, type Comparison, type Outcome } from './benchmark.js';
import { expectSame } from './wrong-answer.error.js';
import { idOf, type Population, SESSIONS_OF_USER, sessionOf, surfaceOf, userOf } from './population.js';
import { type Contestant, interleave, timed } from './rounds.js';
import { type Sizes } from './sizes.js';
import { type FilledStore, type Stores } from './stores.js';

const AT_MOST = 2;
/** The number of finds of each kind per slice. */
const SLICE = 20;

const KINDS = ['find by user', 'find by surface', 'affinity by surface', 'affinity by user'] as const;
type Kind = (typeof KINDS)[number];

export const prf09: Benchmark = {
  id: 'PRF-09',
  title: 'Find by user, by surface and affinity: 1,000,000 sessions against 1,000',
  stores: ['sqlite', 'postgres', 'redis'],
  run,
};

async function run(stores: Stores, { rounds, few, many, operations }: Sizes): Promise<Outcome> {
  const [small, large] = [await stores.with(few), await stores.with(many)];
  const contestants = { small: findsOf(small), large: findsOf(large) };
  const measured = await interleave({ rounds, slices: operations / SLICE }, contestants);
  return {
    comparisons: KINDS.map((what): Comparison => ({
      what,
      unit: 'ms',
      base: { name: `${few.toLocaleString('en')} stored`, rounds: measured.small[what] },
      measured: { name: `${many.toLocaleString('en')} stored`, rounds: measured.large[what] },
      bound: { atMost: AT_MOST },
    })),
  };
}

function findsOf({ adapter, population }: FilledStore): Contestant<Kind> {
  const store = createSessionStore({ adapter: adapter.sessions });
  const resolver = defaultAffinityResolver(store);
  const resolve = (n: number, surfaceId: string): Promise<Session | null | undefined> => {
    const { userId, workspaceId } = sessionOf(n, population);
    return resolver.resolveMessage({ userId, workspaceId, surfaceId });
  };
  const finds: Record<Kind, (n: number) => Promise<() => void>> = {
    'find by user': async (n) => {
      const found = await store.find({ userId: userOf(n, population) });
      return () => expectSame('sessions of a user', found.map(({ id }) => id).sort(), idsOfUser(n, population));
    },
    'find by surface': async (n) => {
      const found = await store.find({ surfaceId: surfaceOf(n) });
      return () =>
        expectSame(
          'sessions of a surface',
          found.map(({ id }) => id),
          [idOf(n)],
        );
    },
    'affinity by surface': async (n) => {
      const session = await resolve(n, surfaceOf(n));
      return () => expectSame('the session that has the surface', session?.id, idOf(n));
    },
    // No session has the surface, so the result is the user's latest session.
    'affinity by user': async (n) => {
      const session = await resolve(n, 'a new one');
      return () => expectSame('the session of the user', session?.userId, userOf(n, population));
    },
  };
  return {
    run: async () => {
      const cost = {} as Record<Kind, number>;
      for (const kind of KINDS) {
        const numbers = Array.from({ length: SLICE }, () => Math.floor(Math.random() * population.count));
        const checks: (() => void)[] = [];
        const time = await timed(async () => {
          for (const n of numbers) checks.push(await finds[kind](n));
        });
        for (const check of checks) check();
        cost[kind] = time / SLICE;
      }
      return cost;
    },
  };
}

function idsOfUser(n: number, { count }: Population): string[] {
  const users = count / SESSIONS_OF_USER;
  return Array.from({ length: SESSIONS_OF_USER }, (_, i) => idOf((n % users) + i * users)).sort();
}
