import { defineOrchestrator, reply, type SessionsAdapter, type TurnContext } from 'nestjs-agent-sessions';
import { type Application, LIVE_STORES, startApplication } from '../support/running-application.js';

const impatient = { retry: { backoff: { type: 'fixed' as const, delayMs: 1 } } };

/** Starts an effect of the turn, which calls `work`. */
type Effect = (turn: TurnContext, work: () => Promise<string>, app: Application) => Promise<unknown>;

/** The work of a child turn, by the id of the calling turn. */
const works = new Map<unknown, () => Promise<string>>();

const child = defineOrchestrator({
  name: 'child',
  intents: {
    answer: async ({ context, attributes }) => {
      const work = (context.work ?? works.get(attributes.callerTurnId)) as () => Promise<string>;
      return reply(await work());
    },
  },
});

const EFFECTS: Readonly<Record<string, Effect>> = {
  'a step': (turn, work) => turn.step('pay', work),
  'a keyed step': (turn, work) => turn.step('pay', work, { key: 'order 7' }),
  'parallel steps': (turn, work) => Promise.all([turn.step('pay', work), turn.step('ship', work)]),
  'a tool': (turn, work) => turn.tools.use('pay', 'call', work),
  'the outcome of a wait': (turn, work) => turn.waitFor('go', { timeoutMs: 1, onTimeout: work }),
  'a child turn': async (_, work, app) =>
    app.handle(child).execute('hi', { sessionId: await app.session(), context: { work } }),
  'a child turn in a stream': async (_, work, app) =>
    app.handle(child).stream('hi', { sessionId: await app.session(), context: { work } }).result,
  'a submitted turn': async (_, work, app) => {
    const { id } = await app.handle(child).submit('hi', { sessionId: await app.session(), context: { work } });
    return app.turns.result(id);
  },
  'asTool().execute': (turn, work, app) => {
    works.set(turn.id, work);
    return app.handle(child).asTool(turn).execute({ input: 'hi' }, { toolCallId: 'call' });
  },
};

describe.each(LIVE_STORES)('the decision of a route over $name', ({ open }) => {
  it.each(Object.entries(EFFECTS))('FIX-81 is stored before %s begins', async (_, effect) => {
    const seen: boolean[] = [];
    let routed = 0;
    const desk = defineOrchestrator({
      name: 'desk',
      route: () => ((routed += 1) === 1 ? 'pay' : 'other'),
      intents: {
        pay: async (turn) => {
          const work = async (): Promise<string> => {
            seen.push((await app.adapter.turns.steps(turn.id)).some(({ kind }) => kind === 'route'));
            return 'paid';
          };
          await effect(turn, work, app);
          if (turn.attempt === 1) throw new Error('crash');
          return reply('as decided');
        },
        other: () => reply('another intent'),
      },
    });
    const app = await startApplication({
      adapter: open(),
      orchestrators: [desk, child],
      turns: { ...impatient, concurrency: 4 },
    });
    const result = await app.handle(desk).execute('hi', { sessionId: await app.session() });
    expect({ said: result.reply, routed }).toEqual({ said: 'as decided', routed: 1 });
    expect(new Set(seen)).toEqual(new Set([true]));
  });

  it('FIX-81 is kept if the first step fails', async () => {
    let routed = 0;
    const desk = defineOrchestrator({
      name: 'desk',
      route: () => ((routed += 1) === 1 ? 'pay' : 'other'),
      intents: {
        pay: (turn) =>
          turn.step('pay', () => {
            if (turn.attempt === 1) throw new Error('inside the first step');
            return 'paid';
          }),
        other: () => reply('another intent'),
      },
    });
    const app = await startApplication({ adapter: open(), orchestrators: [desk], turns: impatient });
    expect(await app.handle(desk).execute('hi', { sessionId: await app.session() })).toMatchObject({ reply: 'paid' });
    expect(routed).toBe(1);
  });

  it.each([
    ['one intent', {}, ['steps 3']],
    ['a route', { route: () => 'act' }, ['route', 'steps 3']],
  ])('FIX-81 costs one write per decision: %s', async (_, routing: object, expected) => {
    const writes: string[] = [];
    const desk = defineOrchestrator({
      name: 'desk',
      ...routing,
      intents: {
        act: async (turn) => {
          for (const step of ['a', 'b']) await turn.step(step, () => step);
          await turn.tools.use('c', 'call', () => 'c');
          return reply('done');
        },
      },
    });
    const app = await startApplication({ adapter: counting(open(), writes), orchestrators: [desk] });
    await app.handle(desk).execute('hi', { sessionId: await app.session() });
    const steps = writes.filter((kind) => kind !== 'route').length;
    expect([...writes.filter((kind) => kind === 'route'), `steps ${steps}`]).toEqual(expected);
  });
});

/** Records the kind of each step that is stored. */
function counting(adapter: SessionsAdapter, writes: string[]): SessionsAdapter {
  const { turns } = adapter;
  const saveStep: typeof turns.saveStep = (hold, step, ...rest) => {
    writes.push(step.kind);
    return turns.saveStep(hold, step, ...rest);
  };
  return Object.create(adapter, {
    turns: { value: Object.create(turns, { saveStep: { value: saveStep } }) as typeof turns },
  }) as SessionsAdapter;
}
