import {
  defineOrchestrator,
  memoryAdapter,
  reply,
  type SessionsAdapter,
  TurnCancelledError,
  type Turn,
  type TurnQueue,
  TurnNotFoundError,
  TurnWaitTimeoutError,
  UnreadableRecordError,
} from 'nestjs-agent-sessions';
import { type TurnChanges } from 'nestjs-agent-sessions/adapter';
import { InProcessQueue } from '../../lib/queue/in-process/in-process-queue.js';
import { gate, LIVE_STORES, rejection, startApplication } from '../support/running-application.js';
import { recordingAdapter } from '../support/recording-adapter.js';
import { eventually } from '../support/eventually.js';
import { whileSteady } from '../support/steady-clock.js';

describe.each(LIVE_STORES)('waiting for a turn over $name', ({ open }) => {
  it("TRN-10 the caller's timeout leaves the turn running; status and result come later", async () => {
    const { pass, open: release } = gate();
    const desk = defineOrchestrator({
      name: 'desk',
      intents: { answer: async () => (await pass(), reply('at last', { data: { n: 1 } })) },
    });
    const { session, handle, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();

    const error = await rejection(handle(desk).execute('hi', { sessionId, timeoutMs: 30 }), TurnWaitTimeoutError);
    expect(error).toMatchObject({ code: 'TURN_WAIT_TIMEOUT', sessionId, timeoutMs: 30 });
    // On a busy machine it is claimed only now.
    await eventually(async () => (await turns.get(error.turnId))?.status === 'running');
    await rejection(turns.result(error.turnId, { timeoutMs: 5 }), TurnWaitTimeoutError);

    release();
    const result = {
      id: error.turnId,
      sessionId,
      status: 'awaiting-input',
      turnIndex: 0,
      reply: 'at last',
      data: { n: 1 },
    };
    expect(await turns.result(error.turnId)).toEqual(result);
    expect(await turns.result(error.turnId)).toEqual(result);
    expect(await turns.get(error.turnId)).toMatchObject({ status: 'awaiting-input', reply: { text: 'at last' } });
  });

  it('TRN-10 an unknown turn', async () => {
    const { turns } = await startApplication({ adapter: open() });
    expect(await turns.get('no-such-turn')).toBeNull();
    await rejection(turns.result('no-such-turn'), TurnNotFoundError);
  });

  it('TRN-10 tells everybody who waits for the same turn', async () => {
    const { pass, open: release } = gate();
    const desk = defineOrchestrator({ name: 'desk', intents: { answer: async () => (await pass(), reply('done')) } });
    const { session, handle, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const { id } = await handle(desk).submit('hi', { sessionId: await session() });
    const waiting = Array.from({ length: 50 }, () => turns.result(id));
    release();
    const results = await Promise.all(waiting);
    expect(new Set(results.map(({ reply: text }) => text))).toEqual(new Set(['done']));
  });

  it('TRN-10 survives that every notification is lost', async () => {
    const adapter = open();
    const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => reply('done') } });
    const { session, handle } = await startApplication({
      adapter: { ...adapter, changes: { subscribe: () => () => {} } },
      orchestrators: [desk],
    });
    expect(await handle(desk).execute('hi', { sessionId: await session() })).toMatchObject({ reply: 'done' });
  });
});

describe('what waiting asks of the store', () => {
  const desk = defineOrchestrator({ name: 'desk', intents: { answer: ({ input }) => reply(input.text) } });

  it('TRN-10 FIX-53 fails if the record of the turn can no longer be read', async () => {
    const store = memoryAdapter();
    let reads = 0;
    const get = async (turnId: string): Promise<Turn | null> => {
      reads += 1;
      if (reads > 1) throw new UnreadableRecordError('turn', turnId);
      return store.turns.get(turnId);
    };
    const adapter = { ...store, turns: Object.assign(Object.create(store.turns) as typeof store.turns, { get }) };
    const { session, turns } = await startApplication({ adapter, turns: webOnly, orchestrators: [desk] });
    const { id } = await turns.submit('desk', 'hi', { sessionId: await session() });
    reads = 0;

    await rejection(turns.result(id), UnreadableRecordError, 'CORRUPT_RECORD');
  });

  it('TRN-10 reads a turn once, when it has ended in another process', () =>
    whileSteady(500, async () => {
      const calls: string[] = [];
      const store = memoryAdapter();
      const adapter = recordingAdapter(withIdsOnly(store), calls);
      const queue = new InProcessQueue(1);
      await startApplication({ adapter: store, turns: { queue }, orchestrators: [desk] });
      const turns = { ...webOnly, queue: { ...deafQueue(), notify: (notified: string) => queue.notify(notified) } };
      const { session, handle } = await startApplication({ adapter, turns, orchestrators: [desk] });
      const sessionId = await session();

      expect(await handle(desk).execute('one', { sessionId })).toMatchObject({ reply: 'one' });
      expect(calls.filter((call) => call === 'turns.get')).toHaveLength(1);
    }));

  it('TRN-10 reads no turns that run here, although notifications have only their ids', () =>
    whileSteady(500, async () => {
      const calls: string[] = [];
      const adapter = recordingAdapter(withIdsOnly(memoryAdapter()), calls);
      const { session, handle } = await startApplication({ adapter, orchestrators: [desk] });
      const sessionId = await session();

      const results = await Promise.all(['one', 'two'].map((text) => handle(desk).execute(text, { sessionId })));
      expect(results.map(({ reply: text }) => text)).toEqual(['one', 'two']);
      expect(calls).not.toContain('turns.get');
    }));

  it('TRN-10 reports a turn that ends without a settle, because it was cancelled when it failed', () =>
    whileSteady(500, async () => {
      const store = memoryAdapter();
      const failing = defineOrchestrator({
        name: 'desk',
        intents: {
          answer: async ({ id }) => {
            await store.turns.cancel(id, 'cancel');
            throw new Error('as it is cancelled');
          },
        },
      });
      // The mark causes no notification, and no caller polls.
      const silent: TurnChanges = { reach: 'store', subscribe: () => () => undefined };
      const { session, handle } = await startApplication({
        adapter: { ...store, changes: silent },
        orchestrators: [failing],
      });

      await rejection(handle(failing).execute('hi', { sessionId: await session() }), TurnCancelledError);
    }));

  it('TRN-10 an idempotency key gives the turn that has ended already, and the one that has not', async () => {
    const { pass, open: release } = gate();
    const slow = defineOrchestrator({ name: 'slow', intents: { answer: async () => (await pass(), reply('done')) } });
    const { adapter, subscriptions } = counting(memoryAdapter());
    const { session, handle } = await startApplication({ adapter, orchestrators: [slow] });
    const before = subscriptions();
    const options = { sessionId: await session(), idempotencyKey: 'key' };
    const waiting = [handle(slow).execute('hi', options), handle(slow).execute('hi', options)];
    release();
    const [first, second] = await Promise.all(waiting);

    expect(second).toEqual(first);
    expect(await handle(slow).execute('hi', options)).toEqual(first);
    // No listener remains for turns that were not needed.
    expect(subscriptions()).toBe(before);
  });

  it('TRN-10 asks again when the turn ended while an answer was under way', () =>
    whileSteady(200, async () => {
      const [ending, answer] = [gate(), gate()];
      const slow = defineOrchestrator({
        name: 'slow',
        intents: { answer: async () => (await ending.pass(), reply('done')) },
      });
      const store = memoryAdapter();
      const get = store.turns.get.bind(store.turns);
      const { session, handle, turns } = await startApplication({ adapter: store, orchestrators: [slow] });
      const { id } = await handle(slow).submit('hi', { sessionId: await session() });
      await eventually(async () => (await get(id))?.status === 'running');
      let asked = 0;
      store.turns.get = async (turnId) => {
        const turn = await get(turnId);
        asked += 1;
        // The first is for `result` itself.
        if (asked === 2) await answer.pass();
        return turn;
      };

      const result = turns.result(id, { timeoutMs: 500 });
      await eventually(() => asked === 2);
      ending.open();
      await eventually(async () => (await get(id))?.status === 'awaiting-input');
      await new Promise((resolve) => setImmediate(resolve));
      answer.open();
      expect(await result).toMatchObject({ reply: 'done' });
    }));
});

describe('two processes over one store', () => {
  it('TRN-10 the caller gets the result of a turn that another process ran', async () => {
    const adapter = memoryAdapter();
    const web = await startApplication({ adapter, orchestrators: [deskOf('web')], turns: webOnly });
    await startApplication({ adapter, orchestrators: [deskOf('worker')] });
    const sessionId = await web.session();
    const desk = web.handle({ name: 'desk' });
    const [first, second] = await Promise.all([desk.execute('one', { sessionId }), desk.execute('two', { sessionId })]);
    expect(first).toMatchObject({ reply: 'worker: one', turnIndex: 0 });
    expect(second).toMatchObject({ reply: 'worker: two', turnIndex: 1 });
  });

  it('TRN-03 TRN-10 order and exclusion hold over both; every turn runs once, and every caller hears', async () => {
    const adapter = memoryAdapter();
    const log: string[] = [];
    const running = new Set<string>();
    const ranBy = new Set<string>();
    const desk = (name: string) =>
      defineOrchestrator({
        name: 'desk',
        intents: {
          answer: async ({ sessionId, input }) => {
            ranBy.add(name);
            log.push(input.text);
            expect(running.has(sessionId)).toBe(false);
            running.add(sessionId);
            for (let i = 0; i < 3; i += 1) await new Promise((resolve) => setImmediate(resolve));
            running.delete(sessionId);
            return reply(`${name}: ${input.text}`);
          },
        },
      });
    const options = { adapter, turns: { concurrency: 2 } };
    const apps = [
      await startApplication({ ...options, orchestrators: [desk('a')] }),
      await startApplication({ ...options, orchestrators: [desk('b')] }),
    ];
    const sessionIds = await Promise.all(Array.from({ length: 6 }, () => apps[0].session()));
    const results = await Promise.all(
      Array.from({ length: 120 }, (_, i) =>
        apps[i % 2].handle({ name: 'desk' }).execute(`message ${i}`, { sessionId: sessionIds[i % 6] }),
      ),
    );

    expect(results.map(({ reply: text }) => text?.slice(3))).toEqual(results.map((_, i) => `message ${i}`));
    expect(log).toHaveLength(120);
    expect(ranBy).toEqual(new Set(['a', 'b']));
    for (const sessionId of sessionIds) {
      const accepted = await adapter.turns.list({ sessionId });
      const texts = accepted.map(({ request }: Turn) => request.input.text);
      expect(log.filter((text) => texts.includes(text))).toEqual(texts);
      expect(accepted.map(({ turnIndex }) => turnIndex)).toEqual(texts.map((_, i) => i));
    }
  });

  it('TRN-10 status is seen from the process that did not run it', async () => {
    const adapter = memoryAdapter();
    const { pass, open: release } = gate();
    const desk = defineOrchestrator({ name: 'desk', intents: { answer: async () => (await pass(), reply('done')) } });
    const worker = await startApplication({ adapter, orchestrators: [desk] });
    const other = await startApplication({ adapter });
    const { id } = await worker.handle(desk).submit('hi', { sessionId: await worker.session() });
    await eventually(async () => (await other.turns.get(id))?.status === 'running');
    const result = other.turns.result(id);
    release();
    expect(await result).toMatchObject({ reply: 'done' });
  });
});

/** A process that takes turns and runs none. */
const webOnly = { queue: deafQueue(), reconcileMs: 3_600_000 };

function deskOf(process: string) {
  return defineOrchestrator({ name: 'desk', intents: { answer: ({ input }) => reply(`${process}: ${input.text}`) } });
}

function deafQueue(): TurnQueue {
  const nothing = async (): Promise<void> => {};
  return { notify: nothing, process: nothing, pause: nothing, resume: nothing, close: nothing };
}

/** The same store, whose notifications never bring the turn. */
function withIdsOnly(adapter: SessionsAdapter): SessionsAdapter {
  return { ...adapter, changes: { subscribe: (listener) => adapter.changes.subscribe((turnId) => listener(turnId)) } };
}

/** The same store, and how many listen to its notifications. */
function counting(adapter: SessionsAdapter): { adapter: SessionsAdapter; subscriptions: () => number } {
  let subscriptions = 0;
  const subscribe: SessionsAdapter['changes']['subscribe'] = (listener) => {
    const end = adapter.changes.subscribe(listener);
    subscriptions += 1;
    return () => {
      subscriptions -= 1;
      end();
    };
  };
  return { adapter: { ...adapter, changes: { subscribe } }, subscriptions: () => subscriptions };
}
