import { type Benchmark, type Comparison, type Outcome } from './benchmark.js';
import { Conversation, type Payload } from './conversation.js';
import { type Contestant, interleave, timed } from './rounds.js';
import { type Sizes } from './sizes.js';
import { type Stores } from './stores.js';
import { type OpenStore } from './store-server.js';

const PAYLOAD: Payload = { checkpointBytes: 5000, messageBytes: 200 };
const AT_MOST = 1.1;
/** The bounds of the row; other values are reported only. */
const BOUNDED: readonly string[] = ['time', 'bytes read', 'bytes written'];

export const prf06: Benchmark = {
  id: 'PRF-06',
  title: 'Flat cost: turn 1,000 of a session against turn 10, window of 20 messages, checkpoint of 5 KB',
  stores: ['sqlite', 'postgres', 'redis'],
  run,
};

async function run(stores: Stores, { rounds, history }: Sizes): Promise<Outcome> {
  const store = await stores.with(0);
  const long = await startAll(store, 'long', history);
  for (const conversation of long) await conversation.runTurns(history.long);
  const pruning = await startAll(store, 'pruning', history);
  for (const conversation of pruning) await conversation.runTurns(history.pruning);
  let short: Conversation[] = [];
  let started = 0;
  const contestants = {
    short: {
      // Use other sessions every time, because their history is longer after a round.
      prepare: async () => {
        started += 1;
        short = await startAll(store, `short${started}`, history);
        for (const conversation of short) await conversation.runTurns(history.short);
        await store.tidy();
      },
      ...turnsOf(() => short, store),
    },
    pruning: turnsOf(() => pruning, store),
    long: turnsOf(() => long, store),
  };
  const measured = await interleave({ rounds, slices: history.turns }, contestants);
  const measures = Object.keys(measured.short);
  const compare = (what: string, to: 'short' | 'pruning'): Comparison => ({
    what: `${what === 'time' ? 'time of a turn' : `${what} a turn`}${to === 'pruning' ? ', where both prune' : ''}`,
    unit: what === 'time' ? 'ms' : what.startsWith('bytes') ? 'bytes' : 'commands',
    base: { name: `turn ${history[to]}`, rounds: measured[to][what] },
    measured: { name: `turn ${history.long.toLocaleString('en')}`, rounds: measured.long[what] },
    ...(to === 'short' && BOUNDED.includes(what) ? { bound: { atMost: AT_MOST } } : {}),
  });
  const comparisons = [
    ...measures.map((what) => compare(what, 'short')),
    // Turn 10 has no checkpoint to prune; measure this part of the difference.
    ...BOUNDED.map((what) => compare(what, 'pruning')),
  ];
  return { comparisons };
}

async function startAll(store: OpenStore, name: string, { sessions }: Sizes['history']): Promise<Conversation[]> {
  const conversations: Conversation[] = [];
  for (let i = 0; i < sessions; i += 1) {
    conversations.push(await Conversation.start(store.adapter, `${name}-${i}`, PAYLOAD));
  }
  return conversations;
}

/** Runs a turn of each session. */
function turnsOf(conversations: () => readonly Conversation[], { meter }: OpenStore): Contestant<string> {
  return {
    run: async () => {
      const sessions = conversations();
      let time = 0;
      const bytes = await meter.measure(async () => {
        time = await timed(async () => {
          for (const conversation of sessions) await conversation.turn();
        });
      });
      const total = { time, ...bytes };
      return Object.fromEntries(Object.entries(total).map(([what, value]) => [what, value / sessions.length]));
    },
    verify: async () => {
      for (const conversation of conversations()) await conversation.verify();
    },
  };
}
