import {
  defineOrchestrator,
  memoryAdapter,
  reply,
  type Turn,
  type TurnQueue,
  TurnNotFoundError,
  TurnWaitTimeoutError,
} from 'nestjs-agent-sessions';
import { gate, LIVE_STORES, rejection, startApplication } from '../support/running-application.js';
import { eventually } from '../support/eventually.js';

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
    expect(await turns.get(error.turnId)).toMatchObject({ status: 'running' });
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

  it('TRN-10 a turn that nobody knows', async () => {
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

  it('TRN-10 survives that every hint is lost', async () => {
    const adapter = open();
    const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => reply('done') } });
    const { session, handle } = await startApplication({
      adapter: { ...adapter, hints: { subscribe: () => () => {} } },
      orchestrators: [desk],
    });
    expect(await handle(desk).execute('hi', { sessionId: await session() })).toMatchObject({ reply: 'done' });
  });
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
  return { ring: nothing, process: nothing, pause: nothing, resume: nothing, close: nothing };
}
