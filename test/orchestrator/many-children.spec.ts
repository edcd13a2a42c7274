import { getEventListeners } from 'node:events';
import { defineOrchestrator, reply, type TurnContext } from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { hostProcess } from '../support/host-process.js';
import { type Application, gate, LIVE_STORES, startApplication } from '../support/running-application.js';

/** Starts a child turn that ends if the signal is aborted. */
type Child = (app: Application, turn: TurnContext, number: number, signal: AbortSignal) => Promise<unknown>;

const [STORE] = LIVE_STORES;
const CHILDREN: Readonly<Record<string, Child>> = {
  'asTool().execute': (app, turn, number) =>
    app
      .handle({ name: 'child' })
      .asTool(turn, { session: 'fresh' })
      .execute({ input: 'hi' }, { toolCallId: `${number}` }),
  'turns.execute': async (app, turn) =>
    app.turns.execute('child', 'hi', { sessionId: await app.session(), signal: turn.signal }),
  'turns.execute with a signal of its own': async (app, _, _number, signal) =>
    app.turns.execute('child', 'hi', { sessionId: await app.session(), signal }),
};

it.each(Object.entries(CHILDREN))(
  `FIX-91 adds one listener and causes no warning for 12 children of a handler with %s, over ${STORE.name}`,
  async (_, start) => {
    const { signal } = new AbortController();
    const warnings: string[] = [];
    const warned = ({ name }: Error): void => void warnings.push(name);
    hostProcess.on('warning', warned);
    const children = gate();
    let running = 0;
    let counts: number[] = [];
    const child = defineOrchestrator({
      name: 'child',
      intents: {
        answer: async () => {
          running += 1;
          await children.pass();
          return reply('done');
        },
      },
    });
    const parent = defineOrchestrator({
      name: 'parent',
      intents: {
        answer: async (turn) => {
          const ended = Array.from({ length: 12 }, (_each, number) => start(app, turn, number, signal));
          await eventually(() => running === 12);
          counts = [turn.signal, signal].map((each) => getEventListeners(each, 'abort').length);
          children.open();
          return reply(String((await Promise.all(ended)).length));
        },
      },
    });
    const app = await startApplication({
      adapter: STORE.open(),
      orchestrators: [parent, child],
      turns: { concurrency: 20 },
    });
    const result = await app.handle(parent).execute('hi', { sessionId: await app.session() });
    hostProcess.off('warning', warned);
    expect(result.reply).toBe('12');
    expect(Math.max(...counts)).toBeLessThanOrEqual(1);
    expect(warnings).not.toContain('MaxListenersExceededWarning');
  },
);

it(`FIX-91 cancels all children of a handler that share its signal, over ${STORE.name}`, async () => {
  let running = 0;
  const child = defineOrchestrator({
    name: 'child',
    intents: {
      answer: ({ signal }) =>
        new Promise<never>((_, reject) => {
          running += 1;
          signal.addEventListener('abort', () => reject(new Error('stopped')));
        }),
    },
  });
  const ids: string[] = [];
  const parent = defineOrchestrator({
    name: 'parent',
    intents: {
      answer: async (turn) => {
        const submit = async (): Promise<void> => {
          const { id } = await app.turns.submit('child', 'hi', { sessionId: await app.session(), signal: turn.signal });
          ids.push(id);
        };
        await Promise.all(Array.from({ length: 3 }, submit));
        await new Promise((resolve) => turn.signal.addEventListener('abort', resolve));
      },
    },
  });
  const app = await startApplication({ adapter: STORE.open(), orchestrators: [parent, child] });
  const { id } = await app.handle(parent).submit('hi', { sessionId: await app.session() });
  await eventually(() => running === 3);
  await app.turns.cancel(id);
  await eventually(async () => {
    const children = await Promise.all(ids.map((each) => app.turns.get(each)));
    return children.every((turn) => turn?.status === 'cancelled');
  });
});
