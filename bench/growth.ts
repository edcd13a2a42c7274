import { type NewMessage } from 'nestjs-agent-sessions/adapter';
import { type Benchmark, type Curve, type Outcome } from './benchmark.js';
import { expectSame } from './wrong-answer.error.js';
import { Conversation } from './conversation.js';
import { type Contestant, interleave, timed } from './rounds.js';
import { type Sizes } from './sizes.js';
import { type Stores } from './stores.js';
import { type OpenStore } from './store-server.js';
import { words } from './text.js';

/** The number of slices per round, so that all points run under the same conditions. */
const SLICES = 5;
const AT_ONCE = 100;
const WINDOW = 20;

export const growth: Benchmark = {
  id: 'GROWTH',
  title: 'What a turn, a read of the log and a value cost as they grow',
  stores: ['sqlite', 'postgres', 'redis'],
  run,
};

async function run(stores: Stores, { rounds, growth: sizes }: Sizes): Promise<Outcome> {
  const store = await stores.with(0);
  const plan = { rounds, slices: SLICES };
  const operations = Math.ceil(sizes.operations / SLICES);

  const byTurns = await interleave(
    plan,
    await contestants(sizes.turns, (turns) => turnsAfter(store, turns, operations)),
  );
  const byMessages = await interleave(
    plan,
    await contestants(sizes.messages, (messages) => readsOfLog(store, messages, operations)),
  );
  const byBytes = await interleave(
    plan,
    await contestants(sizes.bytes, (bytes) => turnsWith(store, bytes, Math.ceil(operations / 4))),
  );
  return {
    comparisons: [],
    curves: [
      curve('a turn', 'turns that the session had', sizes.turns, byTurns, 'turn'),
      ...(['append', 'window', 'page'] as const).map((what) =>
        curve(`${what} of the log`, 'messages in the log', sizes.messages, byMessages, what),
      ),
      { ...curve('a turn', 'bytes of the checkpoint', sizes.bytes, byBytes, 'turn'), proportional: true },
    ],
  };
}

async function contestants<M extends string>(
  sizes: readonly number[],
  prepare: (size: number) => Promise<Contestant<M>>,
): Promise<Record<string, Contestant<M>>> {
  const all: Record<string, Contestant<M>> = {};
  for (const size of sizes) all[size] = await prepare(size);
  return all;
}

function curve<M extends string>(
  what: string,
  by: string,
  sizes: readonly number[],
  measured: Record<string, Record<M, number[]>>,
  measure: M,
): Curve {
  return { what, unit: 'ms', by, points: sizes.map((size) => ({ size, rounds: measured[size][measure] })) };
}

async function turnsAfter({ adapter }: OpenStore, turns: number, operations: number): Promise<Contestant<'turn'>> {
  const conversation = await Conversation.start(adapter, `turns-${turns}`);
  await conversation.runTurns(turns);
  return playing(conversation, operations);
}

async function turnsWith({ adapter }: OpenStore, bytes: number, operations: number): Promise<Contestant<'turn'>> {
  const payload = { checkpointBytes: bytes, messageBytes: 200 };
  const conversation = await Conversation.start(adapter, `bytes-${bytes}`, payload);
  await conversation.runTurns(2);
  return playing(conversation, operations);
}

function playing(conversation: Conversation, operations: number): Contestant<'turn'> {
  return {
    run: async () => ({ turn: (await timed(() => conversation.runTurns(operations))) / operations }),
    verify: () => conversation.verify(),
  };
}

async function readsOfLog(
  { adapter: { conversations } }: OpenStore,
  length: number,
  operations: number,
): Promise<Contestant<'append' | 'window' | 'page'>> {
  const sessionId = `messages-${length}`;
  let written = 0;
  const message = (): NewMessage => ({ id: `m${(written += 1)}`, role: 'user', content: words(200, written) });
  while (written < length) {
    await conversations.append(sessionId, Array.from({ length: Math.min(AT_ONCE, length - written) }, message));
  }
  const each = async (work: (n: number) => Promise<void>): Promise<number> => {
    const time = await timed(async () => {
      for (let n = 0; n < operations; n += 1) await work(n);
    });
    return time / operations;
  };
  return {
    run: async () => ({
      append: await each(async () => {
        const [{ position }] = await conversations.append(sessionId, [message()]);
        expectSame('position of a new message', position, written);
      }),
      window: await each(async () => {
        const window = await conversations.window(sessionId, WINDOW);
        expectSame('end of the log', window.at(-1)?.id, `m${written}`);
      }),
      page: await each(async (n) => {
        const after = Math.floor((written * n) / operations);
        const [first] = await conversations.page(sessionId, { after, limit: WINDOW });
        expectSame('beginning of a page', first.position, after + 1);
      }),
    }),
  };
}
