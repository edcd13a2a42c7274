import { type Benchmark, type Comparison, type Outcome } from './benchmark.js';
import { Conversation } from './conversation.js';
import { idOf } from './population.js';
import { type Contestant, interleave, timed } from './rounds.js';
import { type Sizes } from './sizes.js';
import { type FilledStore, type Stores } from './stores.js';

const SAME_ACTIVE = 1.15;
const AT_RANDOM = 1.3;
/** Turns per slice, so that some time passes between accept and claim. */
const SLICE = 20;

type Measure = 'accept' | 'claim and settle';

export const prf07: Benchmark = {
  id: 'PRF-07',
  title: 'Many sessions: claim and settle with 1,000,000 sessions stored against 1,000',
  stores: ['sqlite', 'postgres', 'redis'],
  run,
};

async function run(stores: Stores, { rounds, few, many, operations, growth }: Sizes): Promise<Outcome> {
  const [small, large] = [await stores.with(few), await stores.with(many)];
  const plan = { rounds, slices: operations / SLICE };
  const conversations = { small: new Map<number, Conversation>(), large: new Map<number, Conversation>() };
  const base = turnsOf(small, everyOne(few, few), conversations.small);
  // Measure sequentially: a store that is used at random has other pages in its cache than a store with fixed active sessions.
  const same = await interleave(plan, {
    base,
    measured: turnsOf(large, everyOne(few, many), conversations.large),
  });
  const random = await interleave(plan, { base, measured: turnsOf(large, anyOne(many), conversations.large) });
  const compare = (what: Measure, where: string, rounds: typeof same, atMost?: number): Comparison => ({
    what: `${what}, ${where}`,
    unit: 'ms',
    base: { name: `${few.toLocaleString('en')} stored`, rounds: rounds.base[what] },
    measured: { name: `${many.toLocaleString('en')} stored`, rounds: rounds.measured[what] },
    ...(atMost === undefined ? {} : { bound: { atMost } }),
  });
  const [ofSame, atRandom] = [`the same ${few.toLocaleString('en')} active`, 'at random over all sessions'];
  const all: Record<string, Contestant<Measure>> = {
    [few]: base,
    [many]: turnsOf(large, anyOne(many), conversations.large),
  };
  for (const stored of growth.stored) all[stored] = turnsOf(await stores.with(stored), anyOne(stored), new Map());
  const grown = await interleave(plan, all);
  return {
    curves: (['accept', 'claim and settle'] as const).map((what) => ({
      what: `${what}, at random over all sessions`,
      unit: 'ms',
      by: 'sessions stored',
      points: [few, ...growth.stored, many].map((size) => ({ size, rounds: grown[size][what] })),
    })),
    comparisons: [
      compare('claim and settle', ofSame, same, SAME_ACTIVE),
      compare('claim and settle', atRandom, random, stores.name === 'sqlite' ? undefined : AT_RANDOM),
      compare('accept', ofSame, same),
      compare('accept', atRandom, random),
    ],
  };
}

/** Selects active sessions in turn, as far apart as possible. */
function everyOne(active: number, stored: number): () => number {
  let next = 0;
  return () => (next++ % active) * Math.floor(stored / active);
}

function anyOne(stored: number): () => number {
  return () => Math.floor(Math.random() * stored);
}

/** @param known the store's conversations so far, by number */
function turnsOf({ adapter }: FilledStore, pick: () => number, known: Map<number, Conversation>): Contestant<Measure> {
  const played = new Set<Conversation>();
  const picked = (): Conversation => {
    const n = pick();
    const conversation = known.get(n) ?? new Conversation(adapter, idOf(n), 1);
    known.set(n, conversation);
    played.add(conversation);
    return conversation;
  };
  return {
    run: async () => {
      const conversations = new Set<Conversation>();
      while (conversations.size < SLICE) conversations.add(picked());
      const cost: Record<Measure, number> = { accept: 0, 'claim and settle': 0 };
      for (const conversation of conversations) cost.accept += await timed(() => conversation.accept());
      for (const conversation of conversations) {
        cost['claim and settle'] += await timed(() => conversation.claimAndSettle());
      }
      return { accept: cost.accept / SLICE, 'claim and settle': cost['claim and settle'] / SLICE };
    },
    verify: async () => {
      for (const conversation of played) await conversation.verify();
      played.clear();
    },
  };
}
