import { type Benchmark, type Comparison, type Outcome } from './benchmark.js';
import { Conversation } from './conversation.js';
import { idOf } from './population.js';
import { type Contestant, interleave, timed } from './rounds.js';
import { type Sizes } from './sizes.js';
import { type FilledStore, type Stores } from './stores.js';

const SAME_ACTIVE = 1.15;
const AT_RANDOM = 1.3;
/** Turns of a slice: so that what is accepted lies a little while before it is claimed. */
const SLICE = 20;

type Measure = 'accept' | 'claim and settle';

export const prf07: Benchmark = {
  id: 'PRF-07',
  title: 'Many sessions: claim and settle with 1,000,000 sessions stored against 1,000',
  stores: ['sqlite', 'postgres', 'redis'],
  run,
};

async function run(stores: Stores, { rounds, few, many, operations }: Sizes): Promise<Outcome> {
  const [small, large] = [await stores.with(few), await stores.with(many)];
  const known = new Map<number, Conversation>();
  const contestants = {
    few: turnsOf(small, everyOne(few, few), new Map()),
    same: turnsOf(large, everyOne(few, many), known),
    random: turnsOf(large, anyOne(many), known),
  };
  const measured = await interleave({ rounds, slices: operations / SLICE }, contestants);
  const compare = (what: Measure, other: 'same' | 'random', atMost?: number): Comparison => ({
    what: `${what}, ${other === 'same' ? `the same ${few.toLocaleString('en')} active` : 'at random over all sessions'}`,
    unit: 'ms',
    base: { name: `${few.toLocaleString('en')} stored`, rounds: measured.few[what] },
    measured: { name: `${many.toLocaleString('en')} stored`, rounds: measured[other][what] },
    ...(atMost === undefined ? {} : { bound: { atMost } }),
  });
  return {
    comparisons: [
      compare('claim and settle', 'same', SAME_ACTIVE),
      compare('claim and settle', 'random', stores.name === 'sqlite' ? undefined : AT_RANDOM),
      compare('accept', 'same'),
      compare('accept', 'random'),
    ],
  };
}

/** Takes the active sessions by turns; they lie as far apart as they can. */
function everyOne(active: number, stored: number): () => number {
  let next = 0;
  return () => (next++ % active) * Math.floor(stored / active);
}

function anyOne(stored: number): () => number {
  return () => Math.floor(Math.random() * stored);
}

/** @param known the store's conversations by number: two contestants may meet in one */
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
