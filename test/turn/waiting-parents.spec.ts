import {
  defineOrchestrator,
  memoryAdapter,
  reply,
  StoreUnavailableError,
  type TurnContext,
  TurnFailedError,
  type TurnService,
} from 'nestjs-agent-sessions';
import { bullmqQueue } from 'nestjs-agent-sessions/bullmq';
import { describeBullmqServers, queueOptionsOn } from '../support/bullmq.js';
import { eventually } from '../support/eventually.js';
import {
  type Application,
  type ApplicationOptions,
  LIVE_STORES,
  rejection,
  startApplication,
} from '../support/running-application.js';

const PARENTS = 40;

describe.each(LIVE_STORES)('40 parents that wait for a child each, over $name', ({ open }) => {
  it.each([1, 32])('FIX-03 finishes them at concurrency %i, and serves an unrelated turn meanwhile', (concurrency) =>
    everyParentFinishes({ adapter: open(), turns: { concurrency } }, concurrency),
  );
});

describeBullmqServers('40 parents that wait for a child each, with BullMQ', (server) => {
  it.each([1, 32])('FIX-03 finishes them at concurrency %i, and serves an unrelated turn meanwhile', (concurrency) =>
    everyParentFinishes(
      { adapter: memoryAdapter(), turns: { queue: bullmqQueue({ ...queueOptionsOn(server), concurrency }) } },
      concurrency,
    ),
  );
});

describe('a handler that waits for other turns', () => {
  it('FIX-03 releases its slot for several waits at once: execute, stream, result and asTool', async () => {
    const { app, slots } = await startFamily({ turns: { concurrency: 1 } }, async (turns, wait, turn) => {
      const child = (): Promise<string> => app.session();
      const later = await turns.submit('desk', 'child', { sessionId: await child() });
      const sessionIds = [await child(), await child()];
      const tool = app.handle({ name: 'desk' }).asTool(turn);
      await wait(() =>
        Promise.all([
          turns.execute('desk', 'child', { sessionId: sessionIds[0] }),
          turns.stream('desk', 'child', { sessionId: sessionIds[1] }).result,
          turns.result(later.id),
          tool.execute({ input: 'child' }, { toolCallId: 'c1' }),
        ]),
      );
    });
    expect(await app.turns.execute('desk', 'parent', { sessionId: await app.session() })).toMatchObject({
      reply: 'parent',
    });
    expect(slots.most).toBe(1);
  });

  it('FIX-03 gets a typed error beyond turns.maxWaitingParents, and submits nothing then', async () => {
    const children: string[] = [];
    const { app } = await startFamily(
      { turns: { maxWaitingParents: 1, retry: { attempts: 1 } } },
      async (turns, wait, { attributes }) => {
        await wait(() => turns.execute('desk', 'child', { sessionId: children[Number(attributes.n)] }));
      },
    );
    for (const n of [0, 1]) {
      children.push(await app.session());
      await app.turns.lanes.pause({ sessionId: children[n] });
    }
    const parent = async (n: number) =>
      app.turns.execute('desk', 'parent', { sessionId: await app.session(), attributes: { n } });
    const first = parent(0);
    await eventually(async () => (await app.turns.lanes.get(children[0])).queued === 1);

    const { failure } = await rejection(parent(1), TurnFailedError);
    expect(failure).toMatchObject({ code: 'TOO_MANY_WAITING_PARENTS', details: { limit: 1 } });
    expect(failure?.name).toBe('ProcessLimitError');
    expect(await app.turns.list({ sessionId: children[1] })).toEqual([]);

    // One that no longer waits leaves its seat to another one.
    await app.turns.lanes.resume({ sessionId: children[0] });
    await first;
    await app.turns.lanes.resume({ sessionId: children[1] });
    expect(await parent(1)).toMatchObject({ reply: 'parent' });
  });

  it('FIX-03 keeps its slots if the wait for a turn that its key found is refused', async () => {
    const adapter = memoryAdapter();
    const registrations: string[] = [];
    const saveAwaited = adapter.turns.saveAwaited.bind(adapter.turns);
    let found = '';
    adapter.turns.saveAwaited = async (hold, awaited) => {
      registrations.push(...awaited.map(({ turnId }) => turnId));
      const isFirst = registrations.filter((turnId) => turnId === found).length === 1;
      if (isFirst && registrations.at(-1) === found) throw new StoreUnavailableError('The store is away.');
      return saveAwaited(hold, awaited);
    };
    let child = '';
    const options = { adapter, turns: { concurrency: 1, retry: { backoff: { type: 'fixed', delayMs: 10 } } } } as const;
    const { app } = await startFamily(options, async (turns, wait) => {
      await wait(() => turns.execute('desk', 'child', { sessionId: child, idempotencyKey: 'ask' }));
    });
    child = await app.session();
    found = (await app.turns.execute('desk', 'child', { sessionId: child, idempotencyKey: 'ask' })).id;
    const parent = await app.turns.submit('desk', 'parent', { sessionId: await app.session() });

    expect(await app.turns.result(parent.id, { timeoutMs: 5000 })).toMatchObject({ reply: 'parent' });
    expect(registrations).toContain(found);
    expect(await app.turns.get(parent.id)).toMatchObject({ failures: 1 });
  });

  it('FIX-03 counts the wait towards turns.timeoutMs', async () => {
    let child = '';
    const { app } = await startFamily(
      { turns: { timeoutMs: 100, retry: { attempts: 1 } } },
      async (turns, wait) => void (await wait(() => turns.execute('desk', 'child', { sessionId: child }))),
    );
    child = await app.session();
    await app.turns.lanes.pause({ sessionId: child });
    const error = await rejection(
      app.turns.execute('desk', 'parent', { sessionId: await app.session() }),
      TurnFailedError,
    );
    expect(error.failure).toMatchObject({ code: 'TURN_TIMEOUT' });
  });

  it('FIX-03 leaves as many slots as before when it is cancelled while it waits, and begins no further turn of its lane', async () => {
    let child = '';
    const { app, slots } = await startFamily(
      { turns: { concurrency: 2 } },
      async (turns, wait) => void (await wait(() => turns.execute('desk', 'child', { sessionId: child }))),
    );
    child = await app.session();
    await app.turns.lanes.pause({ sessionId: child });
    for (let n = 0; n < 5; n += 1) {
      const sessionId = await app.session();
      const parent = await app.turns.submit('desk', 'parent', { sessionId });
      await eventually(async () => (await app.turns.lanes.get(child)).queued === n + 1);
      const next = await app.turns.submit('desk', 'slow', { sessionId });
      await app.turns.cancel(parent.id);
      expect(await app.turns.result(next.id)).toMatchObject({ reply: 'slow' });
    }
    const sessionIds = await Promise.all(Array.from({ length: 8 }, () => app.session()));
    await Promise.all(sessionIds.map((sessionId) => app.turns.execute('desk', 'slow', { sessionId })));
    expect(slots.most).toBe(2);
  });
});

async function everyParentFinishes(options: ApplicationOptions, concurrency: number): Promise<void> {
  const children = new Map<string, string>();
  const { app, slots } = await startFamily(options, async (turns, wait, { sessionId }) => {
    await wait(() => turns.execute('desk', 'child', { sessionId: children.get(sessionId) ?? '' }));
  });
  for (let n = 0; n < PARENTS; n += 1) children.set(await app.session(), await app.session());
  const held = [...children.values()];
  // Every parent waits, for as long as no child may run.
  await Promise.all(held.map((sessionId) => app.turns.lanes.pause({ sessionId })));
  const parents = [...children.keys()].map((sessionId) => app.turns.execute('desk', 'parent', { sessionId }));
  await eventually(async () => (await queuedIn(app, held)) === PARENTS, { limitMs: 20_000 });
  expect(await app.turns.execute('desk', 'other', { sessionId: await app.session() })).toMatchObject({
    reply: 'other',
  });

  await Promise.all(held.map((sessionId) => app.turns.lanes.resume({ sessionId })));
  const results = await Promise.all(parents);
  expect(results.map(({ reply: text }) => text)).toEqual(Array(PARENTS).fill('parent'));
  expect(slots.most).toBeLessThanOrEqual(concurrency);
  await app.close();
}

async function queuedIn({ turns }: Application, sessionIds: readonly string[]): Promise<number> {
  const lanes = await Promise.all(sessionIds.map((sessionId) => turns.lanes.get(sessionId)));
  return lanes.reduce((sum, { queued }) => sum + queued, 0);
}

type Wait = <T>(work: () => Promise<T>) => Promise<T>;

/** One handler, which answers what it hears; for `parent` it does `work` before. `most` handlers ran at once besides those in `wait`. */
async function startFamily(
  options: ApplicationOptions,
  work: (turns: TurnService, wait: Wait, turn: TurnContext) => Promise<void>,
) {
  const slots = { taken: 0, most: 0 };
  const take = (by: number): void => {
    slots.taken += by;
    slots.most = Math.max(slots.most, slots.taken);
  };
  const wait: Wait = async (waiting) => {
    take(-1);
    return waiting().finally(() => take(1));
  };
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      answer: async (turn) => {
        const { input, signal } = turn;
        take(1);
        try {
          if (input.text === 'parent') await work(app.turns, wait, turn);
          if (input.text === 'slow') await new Promise((resolve) => setTimeout(resolve, 20));
          signal.throwIfAborted();
        } finally {
          take(-1);
        }
        return reply(input.text);
      },
    },
  });
  const app: Application = await startApplication({ ...options, orchestrators: [desk] });
  return { app, slots };
}
