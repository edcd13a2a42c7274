import { type TurnHold } from 'nestjs-agent-sessions/adapter';
import { Arena } from './arena.js';
import { type Benchmark, type Comparison, type Fact, type Outcome } from './benchmark.js';
import { Conversation, type Payload } from './conversation.js';
import { type CountedStore, openCounted } from './counted-store.js';
import { type Sizes } from './sizes.js';
import { type Stores } from './stores.js';
import { type Load } from './witness.js';
import { expectSame } from './wrong-answer.error.js';

const PAYLOAD: Payload = { checkpointBytes: 5000, messageBytes: 200 };
/** The maximum per turn of a waiting caller, where each turn notifies. */
const SCRIPT_CALLS = 5;
const CONCURRENCY = 16;
const AT_ONCE = 64;

const BOTH = 'accept and claim, when the lane is idle';
const OPERATIONS = [
  'accept',
  'claim with all it needs',
  'settle',
  'settle that hands over the next turn',
  BOTH,
] as const;
type Operation = (typeof OPERATIONS)[number];
type Counts = Record<Operation, number[]>;

export const prf05: Benchmark = {
  id: 'PRF-05',
  title: 'Round trips of a turn, counted on the connection; of SQLite the transactions, counted in its log',
  stores: ['sqlite', 'postgres', 'mariadb', 'redis'],
  run,
};

async function run({ name, address }: Stores, sizes: Sizes): Promise<Outcome> {
  const store = await openCounted(name, address);
  try {
    const counts = await countOperations(store, sizes.rounds);
    const comparisons = OPERATIONS.map((operation): Comparison => ({
      what: operation,
      unit: store.unit,
      base: { name: 'allowed', rounds: counts[operation].map(() => store.allowed) },
      measured: { name: 'ours', rounds: counts[operation] },
      // The row has no bound for this: accept and claim together, where a store combines them.
      ...(operation === BOTH ? {} : { bound: { atMost: 1 } }),
    }));
    const together = await countTogether(store);
    return {
      comparisons: name === 'redis' ? [...comparisons, await notifying(sizes)] : comparisons,
      facts: [together],
    };
  } finally {
    await store.close();
  }
}

/** Repeats turns of a session: one is claimed, one is returned by a settle, one is claimed when it is accepted. */
async function countOperations(store: CountedStore, rounds: number): Promise<Counts> {
  const conversation = await Conversation.start(store.adapter, 'counted', PAYLOAD);
  const counts = Object.fromEntries(OPERATIONS.map((operation) => [operation, [] as number[]])) as Counts;
  // The first turns send scripts or prepare statements, and fill the history's window.
  await conversation.runTurns(20);
  for (let round = 0; round < rounds; round += 1) {
    const counting = async <T>(operation: Operation, work: () => Promise<T>): Promise<T> => {
      const before = store.count();
      const result = await work();
      const count = store.count() - before;
      // The count must not be zero.
      expectSame(`whether ${operation} was seen`, count > 0, true);
      counts[operation].push(count);
      return result;
    };
    await counting('accept', () => conversation.accept());
    await counting('accept', () => conversation.accept());
    const first = await counting('claim with all it needs', () => conversation.claim());
    const second = await counting('settle that hands over the next turn', () => conversation.settle(first));
    await counting('settle', () => conversation.settle(second!));
    const both = async (): Promise<TurnHold> => (await conversation.accept(true)) ?? conversation.claim();
    await conversation.settle(await counting(BOTH, both));
  }
  await conversation.verify();
  return counts;
}

/** Calls of the same moment may share a round trip. */
async function countTogether(store: CountedStore): Promise<Fact> {
  const conversations = await Promise.all(
    Array.from({ length: AT_ONCE }, (_, n) => Conversation.start(store.adapter, `together-${n}`, PAYLOAD)),
  );
  const turns = 5;
  const before = store.count();
  await Promise.all(conversations.map((conversation) => conversation.runTurns(turns)));
  const each = (store.count() - before) / AT_ONCE / turns;
  for (const conversation of conversations) await conversation.verify();
  return { what: `${store.unit} a turn, ${AT_ONCE} sessions at once`, value: each.toFixed(2) };
}

/** Runs whole turns through BullMQ, with their notifications and all calls of the workers and the waiting caller. */
async function notifying({ rounds, lanes }: Sizes): Promise<Comparison> {
  const load: Load = Array.from({ length: lanes.sessions }, () => lanes.turns);
  const turns = lanes.sessions * lanes.turns;
  const arena = await Arena.open();
  const calls: number[] = [];
  try {
    const process = arena.process('ours');
    for (let round = 0; round < rounds; round += 1) {
      await arena.clear();
      await process.call('open', { system: 'ours', url: arena.url, role: 'both', concurrency: CONCURRENCY, load });
      await process.call('prepare');
      const before = await arena.scriptCalls();
      await process.call('closedLoop');
      calls.push(((await arena.scriptCalls()) - before) / turns);
      await process.call('verify');
      await process.call('close');
    }
  } finally {
    await arena.close();
  }
  return {
    what: `script calls of a turn with the notification, each waited for, concurrency ${CONCURRENCY}`,
    unit: 'commands',
    base: { name: 'allowed', rounds: calls.map(() => SCRIPT_CALLS) },
    measured: { name: 'ours', rounds: calls },
    bound: { atMost: 1 },
  };
}
