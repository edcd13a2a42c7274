import { setTimeout as delay } from 'node:timers/promises';
import { defineOrchestrator, memoryAdapter, reply, type TurnContext, TurnFailedError } from 'nestjs-agent-sessions';
import { aborted, LIVE_STORES, rejection, startApplication } from '../support/running-application.js';
import { whileSteady } from '../support/steady-clock.js';

describe.each(LIVE_STORES)('an attempt that takes too long over $name', ({ open }) => {
  it('TRN-09 is aborted, counts as failed, and the turn is retried', () =>
    whileSteady(20, async () => {
      const { desk, reasons } = slowDesk(1);
      const { session, handle, turns } = await startApplication({
        adapter: open(),
        orchestrators: [desk],
        turns: { timeoutMs: 50, retry: { backoff: { delayMs: 1 } } },
      });
      const sessionId = await session();

      expect(await handle(desk).execute('go', { sessionId })).toMatchObject({ reply: 'attempt 2' });

      expect(reasons).toEqual(['TURN_TIMEOUT']);
      expect((await turns.list({ sessionId }))[0]).toMatchObject({ status: 'awaiting-input', failures: 1 });
    }));

  it('TRN-09 fails the turn after as many attempts as there are', async () => {
    const { desk } = slowDesk(Infinity);
    const { session, handle } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { timeoutMs: 30, retry: { attempts: 2, backoff: { delayMs: 1 } } },
    });
    const error = await rejection(handle(desk).execute('go', { sessionId: await session() }), TurnFailedError);
    expect(error.failure).toMatchObject({ code: 'TURN_TIMEOUT', details: { timeoutMs: 30 } });
  });
});

it('TRN-09 a handler that does not listen is not waited for, and cannot write any more', async () => {
  let late: Promise<unknown> = Promise.resolve();
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      go: (turn: TurnContext) => {
        if (turn.attempt > 1) return reply('second');
        late = aborted(turn.signal).catch(() => turn.step('late', () => 'written'));
        late.catch(() => undefined);
        return new Promise<never>(() => {});
      },
    },
  });
  const { session, handle } = await startApplication({
    orchestrators: [desk],
    turns: { timeoutMs: 30, retry: { backoff: { delayMs: 1 } } },
  });
  expect(await handle(desk).execute('go', { sessionId: await session() })).toMatchObject({ reply: 'second' });
  await expect(late).rejects.toMatchObject({ code: 'TURN_TIMEOUT' });
});

it('TRN-09 counts the time also of an attempt that outlives its first lease', () =>
  whileSteady(300, async () => {
    const { desk, reasons } = slowDesk(1);
    const { session, handle } = await startApplication({
      orchestrators: [desk],
      turns: { leaseMs: 1000, timeoutMs: 1200, retry: { backoff: { delayMs: 1 } } },
    });
    expect(await handle(desk).execute('go', { sessionId: await session() })).toMatchObject({ reply: 'attempt 2' });
    expect(reasons).toEqual(['TURN_TIMEOUT']);
  }));

it('TRN-09 does not affect an attempt that ended in time', async () => {
  let signal: AbortSignal | undefined;
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      go: (turn: TurnContext) => {
        signal = turn.signal;
        return reply('in time');
      },
    },
  });
  const { session, handle } = await startApplication({ orchestrators: [desk], turns: { timeoutMs: 100 } });
  await handle(desk).execute('go', { sessionId: await session() });
  await delay(150);
  expect(signal?.aborted).toBe(false);
});

it('TRN-09 TRN-13 the time that a turn waits for a signal does not count', () =>
  whileSteady(50, async () => {
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        go: async (turn: TurnContext) =>
          reply(String(await turn.waitFor('go', { timeoutMs: 200, onTimeout: () => 'late' }))),
      },
    });
    const { session, handle } = await startApplication({
      adapter: memoryAdapter(),
      orchestrators: [desk],
      turns: { timeoutMs: 100, retry: { attempts: 1 } },
    });
    expect(await handle(desk).execute('go', { sessionId: await session() })).toMatchObject({ reply: 'late' });
  }));

/** Hangs in its first attempts. */
function slowDesk(attempts: number) {
  const reasons: unknown[] = [];
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      go: async (turn: TurnContext) => {
        if (turn.attempt > attempts) return reply(`attempt ${turn.attempt}`);
        return aborted(turn.signal).catch((reason: unknown) => {
          reasons.push((reason as { code?: string }).code);
          throw reason;
        });
      },
    },
  });
  return { desk, reasons };
}
