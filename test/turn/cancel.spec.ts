import {
  defineOrchestrator,
  memoryAdapter,
  reply,
  StoreUnavailableError,
  type TurnContext,
  TurnCancelledError,
  TurnNotFoundError,
} from 'nestjs-agent-sessions';
import {
  aborted,
  type Application,
  gate,
  LIVE_STORES,
  rejection,
  startApplication,
} from '../support/running-application.js';
import { capturingLogger } from '../support/capturing-logger.js';
import { eventually } from '../support/eventually.js';
import { steadyClock } from '../support/steady-clock.js';
import { BEHAVIOUR_STORES } from '../support/stores.js';

describe.each(LIVE_STORES)('cancelling a turn over $name', ({ open }) => {
  it('TRN-06 discards the result of a handler that was interrupted', async () => {
    const begun = gate();
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: async (turn) => {
          if (turn.input.text === 'next') return reply('next');
          void turn.emit({ type: 'delta', data: 'what is stored before the turn is settled' });
          begun.open();
          await aborted(turn.signal).catch(() => undefined);
          return reply('too late');
        },
      },
    });
    const { session, handle, adapter } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const first = rejection(handle(desk).execute('first', { sessionId }), TurnCancelledError);
    await begun.pass();
    await handle(desk).execute('next', { sessionId, whenBusy: 'interrupt' });
    await first;
    const log = await adapter.conversations.page(sessionId);
    expect(log.map(({ content }) => content)).toEqual(['first', 'next', 'next']);
  });

  it('TRN-09 cancels a queued turn at once', async () => {
    const { desk, started } = listeningDesk();
    const { session, handle, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    await handle(desk).submit('wait', { sessionId });
    await eventually(() => started.length === 1);

    const queued = rejection(handle(desk).execute('queued', { sessionId }), TurnCancelledError);
    const [, second] = await eventually(async () => {
      const all = await turns.list({ sessionId });
      return all.length === 2 ? all : null;
    });
    expect(await turns.cancel(second.id)).toMatchObject({
      status: 'cancelled',
      settledAt: expect.any(String) as string,
    });
    expect(await queued).toMatchObject({ code: 'TURN_CANCELLED', sessionId, turnId: second.id });
    expect(started).toEqual(['wait']);
  });

  it('TRN-09 aborts the signal of a running turn within a second, and settles it as cancelled with the state as before', async () => {
    const { desk, started, stoppedAt } = listeningDesk();
    const { adapter, session, handle, turns, checkpoints } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
    });
    const sessionId = await session();
    await handle(desk).execute('before', { sessionId });
    const before = await checkpoints.load('desk', sessionId);
    const messages = await adapter.conversations.page(sessionId);

    const running = rejection(handle(desk).execute('wait', { sessionId }), TurnCancelledError);
    await eventually(() => started.includes('wait'));
    const [, turn] = await turns.list({ sessionId });
    const askedAt = steadyClock.now();
    expect(await turns.cancel(turn.id)).toMatchObject({ status: 'running', cancelMode: 'cancel' });
    await running;

    expect(stoppedAt[0] - askedAt).toBeLessThan(1000);
    const settled = await turns.get(turn.id);
    expect(settled).toMatchObject({ status: 'cancelled', failures: 0 });
    expect(settled).not.toHaveProperty('turnIndex');
    expect(settled).not.toHaveProperty('cancelMode');
    expect(await checkpoints.load('desk', sessionId)).toEqual(before);
    expect(await adapter.conversations.page(sessionId)).toEqual(messages);
    expect(await handle(desk).execute('after', { sessionId })).toMatchObject({ turnIndex: 1 });
  });

  it('TRN-09 does not wait for a handler that ignores the signal, and rejects its later calls', async () => {
    const { pass, open: release } = gate();
    const begun = gate();
    const late: unknown[] = [];
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: async (turn) => {
          if (turn.input.text !== 'deaf') return reply('next');
          begun.open();
          await pass();
          await turn.step('late', () => 'effect').catch((error: unknown) => late.push(error));
          return reply('too late');
        },
      },
    });
    const { session, handle, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const deaf = rejection(handle(desk).execute('deaf', { sessionId }), TurnCancelledError);
    await begun.pass();
    const [turn] = await turns.list({ sessionId });
    await turns.cancel(turn.id);
    await deaf;
    expect(await handle(desk).execute('next', { sessionId })).toMatchObject({ reply: 'next', turnIndex: 0 });

    release();
    await eventually(() => late.length === 1);
    expect(late[0]).toMatchObject({ code: 'TURN_STOPPED' });
    expect(await turns.get(turn.id)).toMatchObject({ status: 'cancelled' });
  });

  it('TRN-09 cancels a turn that waits for its retry, at once', async () => {
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: ({ input }) => {
          if (input.text === 'fails') throw new Error('not today');
          return reply('next');
        },
      },
    });
    const { session, handle, turns } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { backoff: { type: 'fixed', delayMs: 3_600_000 } } },
    });
    const sessionId = await session();
    const { id } = await handle(desk).submit('fails', { sessionId });
    const next = handle(desk).execute('next', { sessionId });
    await eventually(async () => (await turns.get(id))?.failures === 1);
    expect(await turns.cancel(id)).toMatchObject({ status: 'cancelled', failures: 1 });
    expect(await next).toMatchObject({ reply: 'next' });
  });

  it('TRN-09 cancels through the `signal` option: a running turn, a queued one, and one that was not submitted yet', async () => {
    const { desk, started } = listeningDesk();
    const { session, handle, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const [first, second] = [new AbortController(), new AbortController()];
    const running = handle(desk).execute('wait', { sessionId, signal: first.signal });
    await eventually(() => started.length === 1);
    const queued = handle(desk).execute('queued', { sessionId, signal: second.signal });
    await eventually(async () => (await turns.list({ sessionId })).length === 2);

    second.abort();
    await rejection(queued, TurnCancelledError);
    first.abort();
    await rejection(running, TurnCancelledError);
    await expect(handle(desk).execute('never', { sessionId, signal: first.signal })).rejects.toBe(first.signal.reason);
    expect((await turns.list({ sessionId })).map(({ status }) => status)).toEqual(['cancelled', 'cancelled']);
  });

  it('TRN-09 the signal of a turn that is over does nothing', async () => {
    const { desk } = listeningDesk();
    const { session, handle, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const controller = new AbortController();
    const { id } = await handle(desk).execute('hi', { sessionId: await session(), signal: controller.signal });
    const settled = await turns.get(id);
    controller.abort();
    expect(await turns.cancel(id)).toEqual(settled);
  });

  it('TRN-09 cancels a turn that a handler submitted with its signal, when the turn of the handler is cancelled', async () => {
    const { desk, started } = listeningDesk();
    const outer = defineOrchestrator({
      name: 'outer',
      intents: {
        answer: async ({ signal }: TurnContext) => {
          await app.turns.execute('desk', 'wait', { sessionId: inner, signal });
          return reply('done');
        },
      },
    });
    const app: Application = await startApplication({ adapter: open(), orchestrators: [desk, outer] });
    const inner = await app.session();
    const { id } = await app.turns.submit('outer', 'hi', { sessionId: await app.session() });
    await eventually(() => started.length === 1);
    await app.turns.cancel(id);
    await eventually(async () => (await app.turns.list({ sessionId: inner }))[0].status === 'cancelled');
  });

  it('TRN-09 cancelling an unknown turn is TurnNotFoundError', async () => {
    const { turns } = await startApplication({ adapter: open() });
    const error = await rejection(turns.cancel('no-such-turn'), TurnNotFoundError);
    expect(error).toMatchObject({ code: 'TURN_NOT_FOUND', turnId: 'no-such-turn' });
  });
});

it.each(BEHAVIOUR_STORES)('TRN-09 a turn on $name is cancelled by another client within a second', async ({ open }) => {
  const { adapter, connect } = open();
  const { desk, started, stoppedAt } = listeningDesk();
  const worker = await startApplication({ adapter, orchestrators: [desk] });
  const other = (await connect?.()) ?? adapter;
  if (other !== adapter) await other.init?.();
  const { id } = await worker.handle(desk).submit('wait', { sessionId: await worker.session() });
  await eventually(() => started.length === 1);
  const askedAt = steadyClock.now();
  await other.turns.cancel(id, 'cancel');
  await rejection(worker.turns.result(id), TurnCancelledError);
  expect(stoppedAt[0] - askedAt).toBeLessThan(1000);
  if (other !== adapter) await other.close?.();
});

describe('the signal of a turn', () => {
  it('TRN-09 cancels the turn when the store is available again', async () => {
    const { result } = await abortWithoutCancel(new StoreUnavailableError('The store is away.'));
    await rejection(result, TurnCancelledError);
  });

  it('TRN-09 is logged if it cannot cancel the turn', async () => {
    const { app, sessionId, result, lines } = await abortWithoutCancel(new Error('broken'));
    await eventually(() => lines.some((line) => /^error Turn \S+ was not cancelled when its signal/.test(line)));
    const [{ id }] = await app.turns.list({ sessionId, status: 'running' });
    await app.turns.cancel(id);
    await rejection(result, TurnCancelledError);
  });

  /** Aborts the signal of a running turn. The first cancel throws `error`. */
  async function abortWithoutCancel(error: Error) {
    const adapter = memoryAdapter();
    const cancel = adapter.turns.cancel.bind(adapter.turns);
    let cancels = 0;
    adapter.turns.cancel = async (...args) => {
      if ((cancels += 1) === 1) throw error;
      return cancel(...args);
    };
    const { lines, logger } = capturingLogger();
    const { desk, started } = listeningDesk();
    const app = await startApplication({ adapter, orchestrators: [desk], logger });
    const sessionId = await app.session();
    const controller = new AbortController();
    const result = app.turns.execute('desk', 'wait', { sessionId, signal: controller.signal, timeoutMs: 10_000 });
    await eventually(() => started.length === 1);
    controller.abort();
    return { app, sessionId, result, lines };
  }
});

/** 'wait' runs until it is stopped; everything else is answered at once and leaves a mark in the state. */
function listeningDesk() {
  const started: string[] = [];
  const stoppedAt: number[] = [];
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      answer: async ({ input: { text }, signal }: TurnContext) => {
        started.push(text);
        if (text === 'wait') await aborted(signal).finally(() => stoppedAt.push(steadyClock.now()));
        return reply('done', { state: { last: text } });
      },
    },
  });
  return { desk, started, stoppedAt };
}
