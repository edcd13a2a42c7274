import {
  defineOrchestrator,
  OrchestrationStateManager,
  type SessionsAdapter,
  TokenBudgetExceededError,
  type TurnContext,
  type TurnResult,
} from 'nestjs-agent-sessions';
import { durableModel } from '../../lib/ai-sdk/durable-model.js';
import { type Kill, KillableStores } from '../../lib/testing/chat/killable-stores.js';
import { LIVE_STORES, rejection, startApplication } from '../support/running-application.js';
import { failUntil } from './fixtures/desk.js';
import { SDKS } from './fixtures/models.js';

/** Tokens of each answer. */
const TOKENS = 12;

type Work = (turn: TurnContext) => Promise<unknown>;
/** Asks a model once, or several times in a loop. */
type Ask = (turn: TurnContext, key: string, times?: number) => Promise<void>;

interface Desk {
  /** Executes a turn. @returns its result */
  readonly say: (sessionId: string, work: Work) => Promise<TurnResult>;
  readonly session: () => Promise<string>;
  /** Checks the tokens of the only turn of a session: of its result, its report, and the session's budget. */
  readonly expectAnswers: (sessionId: string, result: TurnResult, answers: number) => Promise<void>;
}

async function startDesk(adapter: SessionsAdapter, tokenBudget = 1_000_000): Promise<Desk> {
  const answer: Work = (turn) => (turn.context.work as Work)(turn);
  const desk = defineOrchestrator({
    name: 'desk',
    tokenBudget,
    intents: {
      answer: async (turn) => {
        await answer(turn);
      },
    },
  });
  const retry = { attempts: 10, backoff: { type: 'fixed' as const, delayMs: 1 } };
  const { app, turns, session } = await startApplication({ adapter, orchestrators: [desk], turns: { retry } });
  const manager = app.get(OrchestrationStateManager, { strict: false }).of('desk');
  return {
    session,
    say: (sessionId, work) => turns.execute('desk', 'hi', { sessionId, context: { work } }),
    expectAnswers: async (sessionId, { id, usage }, answers) => {
      const totalTokens = answers * TOKENS;
      expect(usage).toMatchObject({ totalTokens });
      expect((await turns.get(id))?.report).toMatchObject({ usage: { totalTokens, intents: { totalTokens } } });
      expect((await manager.getState(sessionId))?.cumulativeTokenUsage).toMatchObject({ totalTokens });
    },
  };
}

function keys(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `part ${at}`);
}

interface ScriptedTurn {
  readonly answers: number;
  readonly isParallel?: true;
  readonly work: (turn: TurnContext, ask: Ask) => Promise<void>;
}

/** Turns with calls of models inside of steps and tools. */
const TURNS: Record<string, ScriptedTurn> = {
  'a tool': {
    answers: 4,
    work: async (turn, ask) => {
      await ask(turn, 'before');
      await turn.tools.use('research', '1', () => ask(turn, 'inside', 2));
      await ask(turn, 'after');
    },
  },
  'a step': {
    answers: 4,
    work: async (turn, ask) => {
      await turn.step('research', () => ask(turn, 'inside', 2));
      await ask(turn, 'after', 2);
    },
  },
  'nested steps': {
    answers: 4,
    work: async (turn, ask) => {
      await turn.tools.use('research', '1', async () => {
        await ask(turn, 'inside');
        await turn.step('deeper', () => ask(turn, 'deeper'));
        await ask(turn, 'inside again');
      });
      await ask(turn, 'after');
    },
  },
  'parallel steps': {
    answers: 7,
    isParallel: true,
    work: async (turn, ask) => {
      await Promise.all(keys(3).map((key) => turn.step('research', () => ask(turn, 'inside', 2), { key })));
      await ask(turn, 'after');
    },
  },
  'parallel tools': {
    answers: 7,
    isParallel: true,
    work: async (turn, ask) => {
      await ask(turn, 'before');
      await Promise.all(keys(3).map((key) => turn.tools.use('research', key, () => ask(turn, 'inside'))));
      await Promise.all(keys(3).map((key) => ask(turn, key)));
    },
  },
};

describe.each(SDKS.slice(0, 2))('the tokens of calls inside of steps with $name', ({ sdk, scripted }) => {
  function provider(): { readonly ask: Ask; readonly asked: readonly unknown[] } {
    const { model, asked } = scripted(() => ({ text: 'Done.' }));
    const ask: Ask = async (turn, key, times = 1) => {
      const durable = durableModel(turn, model, { key });
      for (let time = 0; time < times; time += 1) {
        await sdk.generateText({ model: durable, prompt: `${key} ${time}`, maxRetries: 0 });
      }
    };
    return { ask, asked };
  }

  describe.each(LIVE_STORES)('over $name', ({ open }) => {
    it.each(Object.entries(TURNS))('AIS-05 count once for %s, wherever the worker is killed', async (_, turn) => {
      const store = new KillableStores();
      const desk = await startDesk(store.wrap(open()));
      const runTurn = async (kill?: Kill): Promise<number> => {
        const { ask, asked } = provider();
        const sessionId = await desk.session();
        if (kill) store.kill(sessionId, kill);
        const result = await desk.say(sessionId, (context) => turn.work(context, ask));
        const counted = result.usage!.totalTokens / TOKENS;
        // A parallel step may have recorded an answer that was not stored. The worker that repeats the call counts again.
        expect(counted).toBeGreaterThanOrEqual(turn.answers);
        expect(counted).toBeLessThanOrEqual(turn.isParallel ? asked.length : turn.answers);
        await desk.expectAnswers(sessionId, result, counted);
        return store.writes(sessionId);
      };
      const writes = await runTurn();
      const kills = Array.from({ length: 2 * writes }, (_, at) => ({ at: 1 + (at >> 1), isStored: at % 2 === 0 }));
      await Promise.all(kills.map(runTurn));
    });

    it.each(Object.entries(TURNS))('AIS-05 count once for %s, although attempts fail at their end', async (_, turn) => {
      const desk = await startDesk(open());
      const { ask, asked } = provider();
      const sessionId = await desk.session();
      const result = await desk.say(sessionId, async (context) => {
        await turn.work(context, ask);
        failUntil(3, context);
      });
      expect(asked).toHaveLength(turn.answers);
      await desk.expectAnswers(sessionId, result, turn.answers);
    });

    it('AIS-05 count once if the step fails, and is repeated in the same attempt and later', async () => {
      const desk = await startDesk(open());
      const { ask } = provider();
      const sessionId = await desk.session();
      let failures = 0;
      const result = await desk.say(sessionId, async (turn) => {
        const research = () =>
          turn.tools.use('research', '1', async () => {
            await ask(turn, 'inside');
            if ((failures += 1) < 4) throw new Error(`failure ${failures}`);
            await ask(turn, 'inside again');
          });
        await research().catch(research);
      });
      expect(failures).toBe(4);
      await desk.expectAnswers(sessionId, result, 2);
    });

    it('AIS-05 count beside tokens that the handler adds', async () => {
      const desk = await startDesk(open());
      const { ask } = provider();
      const sessionId = await desk.session();
      const result = await desk.say(sessionId, async (turn) => {
        turn.usage.add({ totalTokens: TOKENS });
        await turn.tools.use('research', '1', () => ask(turn, 'inside'));
        const { usage } = await turn.step('plain', () => ({ usage: { totalTokens: TOKENS } }));
        turn.usage.add(usage);
        failUntil(2, turn);
        await ask(turn, 'after');
      });
      // Two calls without a record, one of the tool, one of the plain step, one at the end.
      await desk.expectAnswers(sessionId, result, 5);
    });

    it('AIS-05 use up the budget, although the step comes from the store', async () => {
      const desk = await startDesk(open(), 2 * TOKENS);
      const { ask, asked } = provider();
      const said = desk.say(await desk.session(), async (turn) => {
        await turn.step('research', () => ask(turn, 'inside', 2));
        failUntil(2, turn);
        await ask(turn, 'after');
      });
      await rejection(said, TokenBudgetExceededError);
      expect(asked).toHaveLength(2);
    });
  });
});
