import {
  defineOrchestrator,
  memoryAdapter,
  reply,
  type TurnContext,
  TurnFailedError,
  TurnReentryError,
  type TurnService,
} from 'nestjs-agent-sessions';
import { InProcessQueue } from '../../lib/queue/in-process/in-process-queue.js';
import { eventually } from '../support/eventually.js';
import { type Application, LIVE_STORES, rejection, startApplication } from '../support/running-application.js';

describe('turns inside turns of other applications', () => {
  const answering = (answer: (turn: TurnContext) => unknown) =>
    defineOrchestrator({ name: 'desk', intents: { answer: answer as () => string } });
  const inner = answering(() => reply('inner'));
  const session = { id: 'the-same-id', userId: 'ann' };

  it.each(LIVE_STORES)(
    'FIX-91 executes a turn of the same session id in another store, over $name',
    async ({ open }) => {
      const other = await startApplication({ adapter: open(), orchestrators: [inner] });
      const outer = answering(async ({ sessionId }) => {
        const { reply: said } = await other.turns.execute('desk', 'hi', { sessionId });
        const { id } = await other.turns.submit('desk', 'hi', { sessionId });
        return reply(`outer, ${said}, ${(await other.turns.result(id)).reply}`);
      });
      const app = await startApplication({ adapter: open(), orchestrators: [outer] });
      await Promise.all([app, other].map(({ sessions }) => sessions.create(session)));
      const result = await app.turns.execute('desk', 'hi', { sessionId: session.id });
      expect(result).toMatchObject({ reply: 'outer, inner, inner' });
    },
  );

  it('FIX-91 rejects a turn of its own session in another application with the same store', async () => {
    const adapter = memoryAdapter();
    const other = await startApplication({ adapter, orchestrators: [inner] });
    const outer = answering(({ sessionId }) => other.turns.execute('desk', 'hi', { sessionId }));
    const app = await startApplication({ adapter, orchestrators: [outer] });
    await app.sessions.create(session);
    const error = await rejection(app.turns.execute('desk', 'hi', { sessionId: session.id }), TurnFailedError);
    expect(error.failure).toMatchObject({ code: 'TURN_REENTRY' });
  });
});

describe.each(LIVE_STORES)('turns inside turns over $name', ({ open }) => {
  it('TRN-12 rejects a handler that executes a turn of its own session, instead of a deadlock', async () => {
    const { app, seen } = await startNested({ adapter: open() }, async ({ sessionId, input }, turns, seen) => {
      if (input.text !== 'outer') return;
      seen.push(await rejection(turns().execute('desk', 'inner', { sessionId }), TurnReentryError));
    });
    const sessionId = await app.session();
    expect(await app.turns.execute('desk', 'outer', { sessionId })).toMatchObject({ reply: 'did outer' });
    expect(seen).toMatchObject([{ code: 'TURN_REENTRY', sessionId }]);
    expect(await app.turns.list({ sessionId })).toHaveLength(1);
  });

  it('TRN-12 fails the turn without retries if the error is not caught', async () => {
    const { app } = await startNested({ adapter: open() }, async ({ sessionId }, turns) => {
      await turns().execute('desk', 'inner', { sessionId });
    });
    const sessionId = await app.session();
    const error = await rejection(app.turns.execute('desk', 'outer', { sessionId }), TurnFailedError);
    expect(error.failure).toMatchObject({ name: 'TurnReentryError', code: 'TURN_REENTRY', details: { sessionId } });
    expect(await app.turns.get(error.turnId)).toMatchObject({ status: 'failed', failures: 1 });
  });

  it('TRN-12 sees it through the turn of another session, too', async () => {
    let here = '';
    let there = '';
    const { app, seen } = await startNested({ adapter: open() }, async ({ input }, turns, seen) => {
      if (input.text === 'A') await turns().execute('desk', 'B', { sessionId: there });
      if (input.text === 'B') await turns().execute('desk', 'C', { sessionId: there + '.c' });
      if (input.text === 'C')
        seen.push(await rejection(turns().execute('desk', 'D', { sessionId: here }), TurnReentryError));
    });
    [here, there] = [await app.session(), await app.session()];
    await app.sessions.create({ id: `${there}.c`, userId: 'ann' });
    expect(await app.turns.execute('desk', 'A', { sessionId: here })).toMatchObject({ reply: 'did A' });
    expect(seen).toMatchObject([{ sessionId: here }]);
  });

  it('TRN-12 executes turns of other sessions, one after the other and side by side', async () => {
    const others: string[] = [];
    const { app, seen } = await startNested({ adapter: open() }, async ({ input }, turns, seen) => {
      if (input.text !== 'outer') return;
      const results = await Promise.all(others.map((sessionId) => turns().execute('desk', 'inner', { sessionId })));
      seen.push(...results, await turns().execute('desk', 'again', { sessionId: others[0] }));
    });
    others.push(await app.session(), await app.session());
    await app.turns.execute('desk', 'outer', { sessionId: await app.session() });
    expect(seen).toMatchObject([{ reply: 'did inner' }, { reply: 'did inner' }, { reply: 'did again', turnIndex: 1 }]);
  });

  it('TRN-12 takes the input of each call as it is when the handler calls', async () => {
    const children: string[] = [];
    const replies: (string | null)[] = [];
    const { app } = await startNested({ adapter: open() }, async ({ input }, turns) => {
      if (input.text !== 'outer') return;
      const reused = { text: '' };
      const results = children.map((sessionId, index) => {
        reused.text = `child ${index}`;
        return index === 0
          ? turns().stream('desk', reused, { sessionId }).result
          : turns().execute('desk', reused, { sessionId });
      });
      replies.push(...(await Promise.all(results)).map((result) => result.reply));
    });
    for (let n = 0; n < 3; n += 1) children.push(await app.session());
    await app.turns.execute('desk', 'outer', { sessionId: await app.session() });
    expect(replies).toEqual(['did child 0', 'did child 1', 'did child 2']);
  });

  it('TRN-12 may submit to its own session: the turn runs behind it', async () => {
    const order: string[] = [];
    const { app } = await startNested({ adapter: open() }, async ({ sessionId, input }, turns) => {
      order.push(`start ${input.text}`);
      if (input.text === 'outer') await turns().submit('desk', 'follow-up', { sessionId });
      order.push(`end ${input.text}`);
    });
    const sessionId = await app.session();
    await app.turns.execute('desk', 'outer', { sessionId });
    const [, followUp] = await app.turns.list({ sessionId });
    expect(await app.turns.result(followUp.id)).toMatchObject({ reply: 'did follow-up', turnIndex: 1 });
    expect(order).toEqual(['start outer', 'end outer', 'start follow-up', 'end follow-up']);
  });

  it('TRN-12 waiting for the turn that it submitted to its own session is the same mistake', async () => {
    const { app, seen } = await startNested({ adapter: open() }, async ({ id, sessionId, input }, turns, seen) => {
      if (input.text !== 'outer') return;
      const followUp = await turns().submit('desk', 'follow-up', { sessionId });
      seen.push(await rejection(turns().result(followUp.id), TurnReentryError));
      seen.push(await rejection(turns().result(id), TurnReentryError));
    });
    const sessionId = await app.session();
    await app.turns.execute('desk', 'before', { sessionId });
    await app.turns.execute('desk', 'outer', { sessionId });
    expect(seen).toMatchObject([{ sessionId }, { sessionId }]);
  });

  it('TRN-12 may read the result of an earlier turn of its own session', async () => {
    let earlier = '';
    const { app, seen } = await startNested({ adapter: open() }, async ({ input }, turns, seen) => {
      if (input.text === 'outer') seen.push(await turns().result(earlier));
    });
    const sessionId = await app.session();
    earlier = (await app.turns.execute('desk', 'before', { sessionId })).id;
    await app.turns.execute('desk', 'outer', { sessionId });
    expect(seen).toMatchObject([{ reply: 'did before' }]);
  });

  it('TRN-12 what a turn started and left behind is no re-entry once the turn is over', async () => {
    let later: Promise<unknown> = Promise.resolve();
    const { app } = await startNested({ adapter: open() }, async ({ id, sessionId, input }, turns) => {
      if (input.text !== 'outer') return;
      later = untilOver(turns(), id).then(() => turns().execute('desk', 'later', { sessionId }));
    });
    await app.turns.execute('desk', 'outer', { sessionId: await app.session() });
    expect(await later).toMatchObject({ reply: 'did later', turnIndex: 1 });
  });
});

it('TRN-12 sees it when the turn of the other session runs in another process', async () => {
  const adapter = memoryAdapter();
  const [queue, other] = [new InProcessQueue(1), new InProcessQueue(1)];
  let here = '';
  let there = '';
  const nested = async ({ input }: TurnContext, turns: () => TurnService): Promise<void> => {
    if (input.text === 'A') {
      // B is left to the second process.
      await queue.pause();
      await turns().execute('desk', 'B', { sessionId: there });
    }
    if (input.text === 'B') await turns().execute('desk', 'C', { sessionId: here });
  };
  const { app } = await startNested({ adapter, turns: { queue, retry: { attempts: 1 } } }, nested);
  await startNested({ adapter, turns: { queue: other } }, nested);
  [here, there] = [await app.session(), await app.session()];

  const outer = rejection(app.turns.execute('desk', 'A', { sessionId: here }), TurnFailedError);
  await eventually(async () => (await app.turns.list({ sessionId: there })).length === 1);
  await other.notify(there);
  await outer;
  const [inner] = await app.turns.list({ sessionId: there });
  expect(inner).toMatchObject({ status: 'failed', error: { code: 'TURN_REENTRY', details: { sessionId: here } } });
});

/** An application whose one handler does `work`, which may use its TurnService. */
async function startNested(
  options: Parameters<typeof startApplication>[0],
  work: (turn: TurnContext, turns: () => TurnService, seen: unknown[]) => Promise<void>,
): Promise<{ app: Application; seen: unknown[] }> {
  const seen: unknown[] = [];
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      answer: async (turn) => {
        await work(turn, () => app.turns, seen);
        return reply(`did ${turn.input.text}`);
      },
    },
  });
  const app = await startApplication({ ...options, orchestrators: [desk] });
  return { app, seen };
}

async function untilOver(turns: TurnService, turnId: string): Promise<void> {
  while ((await turns.get(turnId))?.status === 'running') await new Promise((resolve) => setImmediate(resolve));
}
