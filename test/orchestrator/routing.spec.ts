import { Injectable } from '@nestjs/common';
import {
  defineOrchestrator,
  END_TURN,
  Intent,
  IntentRouter,
  Orchestrator,
  reply,
  Route,
  type RouteDecision,
  SessionsConfigurationError,
  TurnCancelledError,
  type TurnContext,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { type IntentFunction } from '../../lib/orchestrator/orchestrator.js';
import { type Application, gate, rejection, SAMPLED_STORES, startApplication } from '../support/running-application.js';
import { capturingLogger } from '../support/capturing-logger.js';
import { eventually } from '../support/eventually.js';

const UNKNOWN: readonly { readonly decision: unknown; readonly shown: string }[] = [
  { decision: 'stauts', shown: 'stauts' },
  { decision: ['status', 'nope'], shown: 'nope' },
  { decision: ['status', END_TURN], shown: 'Symbol(END_TURN)' },
  { decision: undefined, shown: 'undefined' },
  { decision: 42, shown: '42' },
  { decision: 'toString', shown: 'toString' },
  { decision: '__proto__', shown: '__proto__' },
];

describe.each(SAMPLED_STORES)('routing over $name', ({ open }) => {
  it('BOT-03 passes the input, the state and the turn to the route', async () => {
    const desk = deskOf(({ input, state, turnIndex }: TurnContext<{ refunding?: boolean }>) => {
      if (turnIndex === 0) return 'greet';
      return state.refunding || input.text.includes('refund') ? 'refund' : 'status';
    });
    const { handle, session, checkpoints } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const say = async (text: string) => (await handle(desk).execute(text, { sessionId })).reply;
    expect([await say('a refund'), await say('where is it?'), await say('a refund'), await say('it broke')]).toEqual([
      'greet: a refund',
      'status: where is it?',
      'refund: a refund',
      'refund: it broke',
    ]);
    const routes = (await checkpoints.history('desk', sessionId)).map(({ lastRoute }) => lastRoute);
    expect(routes).toEqual([['refund'], ['refund'], ['status'], ['greet']]);
  });

  it('BOT-03 runs several intents in parallel, each once, and merges their results in the order of the route', async () => {
    const { pass, open: release } = gate();
    const running: string[] = [];
    const intent =
      (name: string, state: object): IntentFunction<Record<string, unknown>> =>
      async () => {
        running.push(name);
        // No intent continues before all have begun.
        if (running.length === 3) release();
        await pass();
        return reply(name, { state, data: { from: name } });
      };
    const desk = defineOrchestrator({
      name: 'desk',
      route: () => ['b', 'a', 'b', 'c', 'a'],
      intents: { a: intent('a', { x: 'a', a: 1 }), b: intent('b', { x: 'b', b: 1 }), c: intent('c', {}) },
    });
    const { handle, session, checkpoints, adapter } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
    });
    const sessionId = await session();
    const result = await handle(desk).execute('hi', { sessionId });
    expect(result).toMatchObject({ reply: 'b\n\na\n\nc', data: { from: 'c' } });
    expect(running.sort()).toEqual(['a', 'b', 'c']);
    const checkpoint = await checkpoints.load('desk', sessionId);
    expect(checkpoint).toMatchObject({ state: { x: 'a', a: 1, b: 1 }, lastRoute: ['b', 'a', 'c'] });
    const said = (await adapter.conversations.page(sessionId)).map(({ content }) => content);
    expect(said).toEqual(['hi', 'b', 'a', 'c']);
  });

  it('BOT-03 completes the conversation if one intent returns `completed`', async () => {
    const desk = defineOrchestrator({
      name: 'desk',
      route: () => ['a', 'b'],
      intents: { a: () => reply('bye', { status: 'completed' }), b: () => reply('and thanks') },
    });
    const { handle, session } = await startApplication({ adapter: open(), orchestrators: [desk] });
    expect(await handle(desk).execute('hi', { sessionId: await session() })).toMatchObject({ status: 'completed' });
  });

  it('BOT-03 fails the turn if an intent fails, after the others have ended', async () => {
    const { pass, open: release } = gate();
    let ended = false;
    const desk = defineOrchestrator({
      name: 'desk',
      route: () => ['fails', 'slow'],
      intents: {
        fails: () => {
          throw new RangeError('no such order');
        },
        slow: async () => {
          await pass();
          ended = true;
        },
      },
    });
    const { handle, session, turns } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { attempts: 1 } },
    });
    const turn = await handle(desk).submit('hi', { sessionId: await session() });
    await eventually(async () => (await turns.get(turn.id))?.status === 'running');
    const failed = rejection(turns.result(turn.id), TurnFailedError);
    for (let i = 0; i < 20; i += 1) expect(await turns.get(turn.id)).toMatchObject({ status: 'running' });
    release();
    expect((await failed).failure).toEqual({ name: 'RangeError', message: 'no such order' });
    expect(ended).toBe(true);
  });

  it('BOT-03 NST-22 logs the error of each parallel intent, with its intent', async () => {
    const failing = (message: string) => () => {
      throw new RangeError(message);
    };
    const desk = defineOrchestrator({
      name: 'desk',
      route: () => ['first', 'second', 'third'],
      intents: { first: failing('no order'), second: failing('no stock'), third: failing('no customer') },
    });
    const { lines, logger } = capturingLogger();
    const { handle, session } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { attempts: 1 } },
      logger,
    });
    await rejection(handle(desk).execute('hi', { sessionId: await session() }), TurnFailedError);
    const told = (text: string) => lines.filter((line) => line.includes(text));
    // The worker logs after the store has told the caller.
    await eventually(() => told('no order').length > 0);
    expect(told('no order')).toEqual([expect.stringMatching(/^error .*intent first/s)]);
    expect(told('no stock')).toEqual([
      expect.stringMatching(/^warn Intent second of desk also failed, in turn #?\w+\.\nRangeError: no stock/),
    ]);
    expect(told('no customer')).toEqual([expect.stringMatching(/^warn Intent third/)]);
  });

  it('BOT-03 rejects a decision with more than 16 intents before anything is dispatched', async () => {
    const ran: string[] = [];
    const names = Array.from({ length: 17 }, (_, i) => `intent ${i}`);
    const intents = Object.fromEntries(names.map((name) => [name, () => void ran.push(name)]));
    const desk = defineOrchestrator({
      name: 'desk',
      intents,
      route: ({ input }) => names.slice(0, Number(input.text)),
    });
    const { handle, session } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const error = await rejection(handle(desk).execute('17', { sessionId }), TurnFailedError);
    expect(error.failure).toMatchObject({ name: 'HandlerError', code: 'ORCHESTRATOR_RESULT' });
    expect(error.failure?.message).toMatch(/17 intents; at most 16/);
    expect(ran).toEqual([]);
    await handle(desk).execute('16', { sessionId });
    expect(ran).toHaveLength(16);
  });

  it('BOT-03 accepts END_TURN without an intent, stores the message and keeps the state', async () => {
    const desk = deskOf(({ input }) => (input.text === 'thanks' ? END_TURN : 'status'));
    const { handle, session, checkpoints, adapter } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
    });
    const sessionId = await session();
    await handle(desk).execute('hi', { sessionId });
    const before = await checkpoints.load('desk', sessionId);
    const result = await handle(desk).execute('thanks', { sessionId });
    expect(result).toMatchObject({ status: 'awaiting-input', turnIndex: 1, reply: null });
    expect(await checkpoints.load('desk', sessionId)).toMatchObject({ state: before?.state, lastRoute: [], parent: 0 });
    expect((await adapter.conversations.page(sessionId)).at(-1)).toMatchObject({ role: 'user', content: 'thanks' });
  });

  it.each(UNKNOWN)(
    'BOT-03 rejects an unknown intent, and names the known ones: $shown',
    async ({ decision, shown }) => {
      const ran: string[] = [];
      const desk = defineOrchestrator({
        name: 'desk',
        route: () => decision as RouteDecision,
        intents: { status: () => void ran.push('status'), refund: () => void ran.push('refund') },
      });
      const { handle, session, turns } = await startApplication({
        adapter: open(),
        orchestrators: [desk],
        turns: { retry: { backoff: { type: 'fixed', delayMs: 1 } } },
      });
      const error = await rejection(handle(desk).execute('hi', { sessionId: await session() }), TurnFailedError);
      expect(error.failure).toMatchObject({
        name: 'HandlerError',
        code: 'UNKNOWN_INTENT',
        details: { orchestrator: 'desk', intent: shown, known: ['status', 'refund'] },
      });
      expect(error.failure?.message).toContain('status, refund');
      // Another attempt would run the same code (DAY-17).
      expect(await turns.get(error.turnId)).toMatchObject({ failures: 1 });
      expect(ran).toEqual([]);
    },
  );

  it('BOT-03 accepts as router an object, or a class that Nest provides', async () => {
    const asObject = defineOrchestrator({ name: 'as-object', router: new KeywordRouter(new Keywords()), intents });
    const app = await startApplication({
      adapter: open(),
      orchestrators: [asObject, WithRouterClass, WithRouterInstance],
      providers: [Keywords, KeywordRouter],
    });
    for (const orchestrator of [asObject, WithRouterClass, WithRouterInstance]) {
      expect(await replies(app, orchestrator)).toEqual(['refund', 'status']);
    }
  });

  it('BOT-04 makes one decision and one dispatch per turn, always in iteration 0', async () => {
    let decisions = 0;
    let dispatches = 0;
    @Orchestrator({ name: 'classifier' })
    class Classifier {
      @Route()
      route(turn: TurnContext): RouteDecision {
        decisions += 1;
        return turn.iteration === 0 ? 'classify' : END_TURN;
      }

      @Intent()
      classify(turn: TurnContext): string {
        dispatches += 1;
        return `classified in iteration ${turn.iteration}`;
      }
    }
    const { handle, session } = await startApplication({ adapter: open(), orchestrators: [Classifier] });
    const sessionId = await session();
    for (const turnIndex of [0, 1, 2]) {
      const result = await handle(Classifier).execute('hi', { sessionId });
      expect(result).toMatchObject({ status: 'awaiting-input', turnIndex, reply: 'classified in iteration 0' });
    }
    expect({ decisions, dispatches }).toEqual({ decisions: 3, dispatches: 3 });
  });

  it('BOT-04 ends after the dispatch if the route always names one intent (known failure: it ended with max-iterations)', async () => {
    const desk = deskOf(() => 'status');
    const { handle, session, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const { id } = await handle(desk).execute('hi', { sessionId: await session() });
    expect(await turns.get(id)).toMatchObject({
      status: 'awaiting-input',
      report: { endedBy: 'dispatch', iterations: [{ intents: [{ intent: 'status' }] }] },
    });
  });
});

it.each(['route', 'evaluate'] as const)(
  'BOT-03 BOT-08 calls nothing after the %s if the turn was cancelled during it',
  async (place) => {
    const { pass, open: answer } = gate();
    const asked = gate();
    const called: string[] = [];
    const ask = async (at: string, turn: TurnContext): Promise<boolean> => {
      if (at !== place || turn.input.text === 'next') return true;
      asked.open();
      await pass();
      return false;
    };
    const desk = defineOrchestrator({
      name: 'desk',
      iterate: true,
      route: async (turn) => (await ask('route', turn), 'act'),
      intents: { act: ({ input, iteration }) => void called.push(`${input.text} ${iteration}`) },
      evaluate: (turn) => ask('evaluate', turn),
    });
    const { handle, session, turns } = await startApplication({ orchestrators: [desk] });
    const sessionId = await session();
    const cancelled = rejection(handle(desk).execute('slow', { sessionId }), TurnCancelledError);
    await asked.pass();
    const [{ id }] = await turns.list({ sessionId });
    await turns.cancel(id);
    await cancelled;
    await handle(desk).execute('next', { sessionId });
    const before = [...called];
    answer();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(called).toEqual(before);
    expect(called).not.toContain(place === 'route' ? 'slow 0' : 'slow 1');
  },
);

it('BOT-03 stops the start if a router class is not a provider, and says what to do', async () => {
  const error = await rejection(startApplication({ orchestrators: [WithRouterClass] }), SessionsConfigurationError);
  expect(error.message).toMatch(/WithRouterClass.*KeywordRouter is not a provider.*providers of a module/);
});

@Injectable()
class Keywords {
  readonly refund = /refund/;
}

@Injectable()
class KeywordRouter extends IntentRouter {
  constructor(private readonly keywords: Keywords) {
    super();
  }

  async route({ input }: TurnContext, known: readonly string[]): Promise<RouteDecision> {
    expect(known).toEqual(['refund', 'status']);
    return this.keywords.refund.test(input.text) ? 'refund' : 'status';
  }
}

class Handler {
  @Intent()
  refund(): string {
    return 'refund';
  }

  @Intent()
  status(): string {
    return 'status';
  }
}

@Orchestrator({ name: 'with-router-class', router: KeywordRouter })
class WithRouterClass extends Handler {}

@Orchestrator({ name: 'with-router-instance', router: new KeywordRouter(new Keywords()) })
class WithRouterInstance extends Handler {}

const intents = { refund: () => 'refund', status: () => 'status' };

async function replies(app: Application, orchestrator: Parameters<Application['handle']>[0]): Promise<unknown[]> {
  const sessionId = await app.session();
  const say = async (text: string) => (await app.handle(orchestrator).execute(text, { sessionId })).reply;
  return [await say('a refund, please'), await say('where is it?')];
}

/** An orchestrator with three intents that reply with their name. */
function deskOf(route: (turn: TurnContext<{ refunding?: boolean }>) => RouteDecision) {
  const say =
    (name: string, state = {}): IntentFunction<{ refunding?: boolean }> =>
    ({ input }) =>
      reply(`${name}: ${input.text}`, { state });
  return defineOrchestrator<{ refunding?: boolean }>({
    name: 'desk',
    route,
    intents: { greet: say('greet'), status: say('status'), refund: say('refund', { refunding: true }) },
  });
}
