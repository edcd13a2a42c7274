import {
  defineOrchestrator,
  IntentRouter,
  OrchestratorEvents,
  type MemoryQuery,
  turnOutcome,
  reply,
  type TurnContext,
  TurnContextFactory,
} from 'nestjs-agent-sessions';
import { SAMPLED_STORES, startApplication } from '../support/running-application.js';

/** Every object that can be reached from a value, with its path. */
function* objectsIn(value: unknown, path: string): Generator<[path: string, value: object]> {
  if (typeof value !== 'object' || value === null) return;
  yield [path, value];
  for (const [key, inner] of Object.entries(value)) yield* objectsIn(inner, `${path}.${key}`);
}

/** Paths of objects that can be changed. */
function changeable(value: unknown, path: string): string[] {
  return [...objectsIn(value, path)].flatMap(([at, each]) => (Object.isFrozen(each) ? [] : [at]));
}

const VALUES = ['session', 'input', 'state', 'history', 'messages', 'replies', 'memories', 'attributes'] as const;

function changeableValues(turn: TurnContext): string[] {
  const values = [...VALUES, 'task' as const].flatMap((name) => changeable(turn[name], name));
  return Object.isFrozen(turn) ? values : ['turn', ...values];
}

const INPUT = { text: 'hi', content: [{ type: 'text', text: 'hi' }], metadata: { tags: ['a'] } };

describe.each(SAMPLED_STORES)('values of a turn over $name', ({ open }) => {
  it('FIX-10 freezes every value that a route, an intent or evaluate reads, nested ones included', async () => {
    const found: string[][] = [];
    const note = (turn: TurnContext): void => void found.push(changeableValues(turn));
    const desk = defineOrchestrator<Record<string, unknown>>({
      name: 'desk',
      initialState: () => ({ list: [{ a: 1 }] }),
      iterate: true,
      maxIterations: 2,
      memory: { recall: async () => [{ known: ['x'] }], remember: async () => undefined },
      route: (turn) => (note(turn), 'answer'),
      intents: {
        answer: (turn) => {
          note(turn);
          return reply('ok', {
            data: { list: [1] },
            messages: [{ role: 'assistant', content: [{ type: 'text', text: 'ok' }] }],
          });
        },
      },
      evaluate: (turn, replies) => {
        note(turn);
        found.push(changeable(replies, 'evaluate'));
      },
    });
    const { handle, sessions } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const { id: sessionId } = await sessions.create({ userId: 'ann', metadata: { plan: { name: 'pro' } } });
    for (let count = 0; count < 2; count += 1) {
      await handle(desk).execute(INPUT, { sessionId, attributes: { from: ['web'] } });
    }
    expect(found).toHaveLength(16);
    expect(found.flat()).toEqual([]);
  });

  it('FIX-10 shows no change of one intent to another one, to the record or to the conversation', async () => {
    const seen: string[] = [];
    const spoil = (turn: TurnContext): number => {
      let refused = 0;
      for (const name of VALUES) {
        for (const [, value] of objectsIn(turn[name], name)) {
          try {
            Object.assign(value, { text: 'spoiled', role: 'spoiled', content: 'spoiled', userId: 'spoiled' });
          } catch {
            refused += 1;
          }
        }
      }
      return refused;
    };
    const look = ({ session, input, history, attributes }: TurnContext): string =>
      JSON.stringify({ session, input, history, attributes });
    const desk = defineOrchestrator({
      name: 'desk',
      route: () => ['spoiler', 'witness'],
      intents: {
        spoiler: (turn) => `refused ${spoil(turn) > 3}`,
        witness: async (turn) => {
          await new Promise((resolve) => setImmediate(resolve));
          seen.push(look(turn));
        },
      },
    });
    const { handle, turns, session, adapter } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    for (let count = 0; count < 2; count += 1) {
      const result = await handle(desk).execute(INPUT, { sessionId, attributes: { from: ['web'] } });
      expect(result.reply).toBe('refused true');
      expect((await turns.get(result.id))?.request.input).toEqual(INPUT);
    }
    expect(seen.join('')).not.toContain('spoiled');
    expect(JSON.stringify(await adapter.conversations.page(sessionId))).not.toContain('spoiled');
  });

  it('FIX-10 freezes results of tools, which every call with the same id gets', async () => {
    const changes: unknown[] = [];
    const desk = defineOrchestrator({
      name: 'desk',
      route: () => ['first', 'second'],
      steps: [{ name: 'only', isDefault: true, availableTools: { allowed: ['search'] } }],
      intents: Object.fromEntries(
        ['first', 'second'].map((name) => [
          name,
          async ({ tools }: TurnContext) => {
            const found = await tools.use('search', 'call-1', () => ({ hits: [{ id: 1 }] }));
            changes.push(...changeable(found, 'result'), ...changeable(tools.state, 'state'));
            changes.push(...changeable(tools.activeStep, 'step'), ...changeable(tools.toAIOrchestrationState(), 'ai'));
          },
        ]),
      ),
    });
    const { handle, session } = await startApplication({ adapter: open(), orchestrators: [desk] });
    await handle(desk).execute('hi', { sessionId: await session() });
    expect(changes).toEqual([]);
  });
});

it('FIX-10 freezes what routers, listeners, window functions, memories and context factories get', async () => {
  const found: string[] = [];
  const note = (value: unknown, path: string): void => void found.push(...changeable(value, path));
  class Factory extends TurnContextFactory {
    override create(...[turn, session]: Parameters<TurnContextFactory['create']>): Record<string, unknown> {
      note(turn, 'factory.turn');
      note(session, 'factory.session');
      return { own: { stays: 'changeable' } };
    }
  }
  class Router extends IntentRouter {
    route(_turn: TurnContext, intents: readonly string[]): string {
      note(intents, 'router.intents');
      return 'answer';
    }
  }
  const events: string[] = [];
  const heard = (event: { readonly type: string }): void => {
    events.push(event.type);
    note(event, `event.${event.type}`);
  };
  const own: unknown[] = [];
  const desk = defineOrchestrator({
    name: 'desk',
    router: new Router(),
    historyWindow: (conversation) => (note(conversation, 'window'), conversation.messages),
    memory: {
      recall: async (query: MemoryQuery) => (note(query.input, 'recall.input'), []),
      remember: async ({ input, messages }) => (note(input, 'remember.input'), note(messages, 'remember.messages')),
    },
    memoryScope: (session) => (note(session, 'scope'), 'all'),
    intents: {
      answer: (turn) => {
        own.push(turn.context.own);
        void turn.emit({ type: 'delta', data: { text: ['a'] } });
        return turnOutcome({ messages: [{ role: 'assistant', content: 'x', metadata: { a: [1] } }] });
      },
      other: () => undefined,
    },
    on: { routed: heard, delta: heard, 'session-loaded': heard },
  });
  const { handle, session, app } = await startApplication({
    orchestrators: [desk],
    providers: [{ provide: TurnContextFactory, useClass: Factory }],
  });
  app.get(OrchestratorEvents, { strict: false }).stream.subscribe(heard);
  const sessionId = await session();
  await handle(desk).execute(INPUT, { sessionId, onEvent: heard });
  await handle(desk).execute(INPUT, { sessionId, onEvent: heard });
  expect(new Set(events)).toEqual(expect.objectContaining({ size: 8 }));
  expect(found).toEqual([]);
  expect(Object.isFrozen(own[0])).toBe(false);
});
