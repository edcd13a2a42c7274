import { type INestApplicationContext, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  defineOrchestrator,
  OrchestrationService,
  reply,
  SessionsModule,
  SessionStore,
  type TurnContext,
  TurnService,
} from 'nestjs-agent-sessions';
import { type Benchmark, type Outcome } from './benchmark.js';
import { type CountedStore, openCounted } from './counted-store.js';
import { type Sizes } from './sizes.js';
import { type Stores } from './stores.js';
import { expectSame } from './wrong-answer.error.js';

const AGENT = 'desk';
const TOOL = 'search';
const TOOLS_OF_A_TURN = 10;
/** Turns in sequence in one session, few enough for its history window. */
const USES = 50;

type Kind = 'tools' | 'steps';

export const prf10: Benchmark = {
  id: 'PRF-10',
  title: 'What it costs to record the use of a tool, counted on the connection; of SQLite the transactions, in its log',
  stores: ['sqlite', 'postgres', 'mariadb', 'redis'],
  run,
};

async function run({ name, address }: Stores, { rounds }: Sizes): Promise<Outcome> {
  const store = await openCounted(name, address);
  const app = await NestFactory.createApplicationContext(
    {
      module: DeskModule,
      imports: [SessionsModule.forRoot({ adapter: store.adapter, sweep: false }), SessionsModule.forFeature([desk()])],
    },
    { logger: ['error', 'fatal'] },
  );
  try {
    const outside = await usesOutside(app, store);
    const steps: number[] = [];
    const tools: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      steps.push(await turnOf(app, store, 'steps'));
      tools.push(await turnOf(app, store, 'tools'));
    }
    const mean = outside.reduce((sum, each) => sum + each, 0) / outside.length;
    return {
      comparisons: [
        {
          what: 'processToolUsage outside a turn',
          unit: store.unit,
          base: { name: 'allowed', rounds: outside.map(() => store.allowed) },
          measured: { name: 'ours', rounds: outside },
          bound: { atMost: 1 },
        },
        {
          // A step stores its result in every case.
          what: `a whole turn that uses ${TOOLS_OF_A_TURN} tools, against as many steps that are no tools`,
          unit: store.unit,
          base: { name: 'steps', rounds: steps },
          measured: { name: 'tools', rounds: tools },
          // On MariaDB, a settle with progress of a plan takes one more round trip, for any number of uses.
          ...(name === 'mariadb' ? {} : { bound: { atMost: 1 } }),
        },
      ],
      facts: [
        { what: `${store.unit} of a use outside a turn, mean of ${USES}, folding included`, value: mean.toFixed(2) },
      ],
    };
  } finally {
    await app.close();
    await store.close();
  }
}

@Module({})
class DeskModule {}

function desk() {
  const kinds = {
    tools: (turn: TurnContext, n: number) => turn.tools.use(TOOL, `call-${n}`, () => n),
    steps: (turn: TurnContext, n: number) => turn.step(`call-${n}`, () => n),
  };
  return defineOrchestrator({
    name: AGENT,
    // A condition and a sequence, so that each use changes the plan's state.
    steps: [
      { name: 'look', isDefault: true, sequence: [TOOL, TOOL, TOOL] },
      { name: 'pay', conditions: [{ type: 'tool_used', value: 'check_stock' }] },
    ],
    intents: {
      work: async (turn) => {
        let sum = 0;
        for (let n = 0; n < TOOLS_OF_A_TURN; n += 1) sum += await kinds[turn.input.text as Kind](turn, n);
        return reply(String(sum));
      },
    },
  });
}

async function usesOutside(app: INestApplicationContext, store: CountedStore): Promise<number[]> {
  const orchestration = app.get(OrchestrationService, { strict: false });
  const sessionId = await session(app);
  // The first use stores the plan.
  await orchestration.processToolUsage(sessionId, TOOL);
  const counts: number[] = [];
  for (let use = 0; use < USES; use += 1) {
    const before = store.count();
    const state = await orchestration.processToolUsage(sessionId, TOOL);
    counts.push(store.count() - before);
    expectSame('uses in the history', state?.toolHistory.length, use + 2);
  }
  return counts;
}

async function turnOf(app: INestApplicationContext, store: CountedStore, kind: Kind): Promise<number> {
  const turns = app.get(TurnService, { strict: false });
  const sessionId = await session(app);
  const before = store.count();
  const result = await turns.execute(AGENT, kind, { sessionId });
  const count = store.count() - before;
  expectSame('what the tools gave together', result.reply, String((TOOLS_OF_A_TURN * (TOOLS_OF_A_TURN - 1)) / 2));
  return count;
}

async function session(app: INestApplicationContext): Promise<string> {
  const { id } = await app.get(SessionStore, { strict: false }).create({ userId: 'somebody' });
  return id;
}
