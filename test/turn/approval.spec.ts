import { setTimeout as delay } from 'node:timers/promises';
import { IsBoolean } from 'class-validator';
import {
  defineOrchestrator,
  InvalidInputError,
  memoryAdapter,
  PermanentTurnError,
  reply,
  StoreUnavailableError,
  TurnCancelledError,
  type TurnContext,
  TurnFailedError,
  TurnNotFoundError,
  TurnSettledError,
} from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { gate, LIVE_STORES, rejection, startApplication } from '../support/running-application.js';

class Approval {
  @IsBoolean()
  granted!: boolean;
}

describe.each(LIVE_STORES)('waiting for a signal over $name', ({ open }) => {
  it('TRN-13 lets the turn await the signal, and continues where it was when the signal comes', async () => {
    const { desk, effects } = refundDesk();
    const { session, handle, turns } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { reconcileMs: 3_600_000 },
    });
    const sessionId = await session();
    const result = handle(desk).execute('refund', { sessionId });
    const turn = await waitingTurn(turns, sessionId);
    expect(turn).toMatchObject({ waitingFor: { signal: 'approval' }, failures: 0 });
    expect(effects).toEqual(['look up']);

    expect(await turns.signal(turn.id, 'approval', { granted: true })).toMatchObject({ accepted: true });

    expect(await result).toMatchObject({ reply: 'Paid.', turnIndex: 0 });
    expect(effects).toEqual(['look up', 'pay']);
    expect(await turns.get(turn.id)).toMatchObject({ status: 'awaiting-input', failures: 0 });
  });

  it('TRN-13 does not block a worker: other sessions continue, and a later message of the session waits', async () => {
    const { desk } = refundDesk();
    const adapter = open();
    const { session, handle, turns } = await startApplication({
      adapter,
      orchestrators: [desk],
      turns: { concurrency: 1 },
    });
    const [waiting, other] = [await session(), await session()];
    const refund = handle(desk).execute('refund', { sessionId: waiting });
    const { id } = await waitingTurn(turns, waiting);
    const later = handle(desk).execute('hello', { sessionId: waiting });

    expect(await handle(desk).execute('hello', { sessionId: other })).toMatchObject({ reply: 'hello' });
    expect((await turns.list({ sessionId: waiting })).map(({ status }) => status)).toEqual(['waiting', 'queued']);
    await turns.signal(id, 'approval', { granted: false });

    expect(await refund).toMatchObject({ reply: 'Declined.', turnIndex: 0 });
    expect(await later).toMatchObject({ reply: 'hello', turnIndex: 1 });
  });

  it('TRN-13 takes a signal that came early, and the first of several', async () => {
    const { desk, effects, looking } = refundDesk({ holdLookUp: true });
    const { session, handle, turns } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      // The reconciler does not run, so the notified lanes must be enough.
      turns: { reconcileMs: 3_600_000 },
    });
    const sessionId = await session();
    const result = handle(desk).execute('refund', { sessionId });
    const id = await looking.started;

    expect(await turns.signal(id, 'approval', { granted: true })).toMatchObject({ accepted: true });
    expect(await turns.signal(id, 'approval', { granted: false })).toMatchObject({ accepted: false });
    looking.goOn();

    expect(await result).toMatchObject({ reply: 'Paid.' });
    expect(effects).toEqual(['look up', 'pay']);
  });

  it('TRN-13 fails the turn without retries when the signal times out', async () => {
    const { desk } = refundDesk({ timeoutMs: 30 });
    const { session, handle, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();

    const error = await rejection(handle(desk).execute('refund', { sessionId }), TurnFailedError);

    expect(error.failure).toMatchObject({ code: 'TURN_SIGNAL_TIMEOUT', details: { signal: 'approval' } });
    const [turn] = await turns.list({ sessionId });
    expect(turn).toMatchObject({ status: 'failed', failures: 1 });
    await expect(turns.signal(turn.id, 'approval', { granted: true })).rejects.toThrow(TurnSettledError);
  });

  it('TRN-13 continues with onTimeout instead', async () => {
    const { desk } = refundDesk({ timeoutMs: 30, onTimeout: () => ({ granted: false }) });
    const { session, handle } = await startApplication({ adapter: open(), orchestrators: [desk] });
    expect(await handle(desk).execute('refund', { sessionId: await session() })).toMatchObject({ reply: 'Declined.' });
  });

  it('TRN-13 BOT-30 steps beside a wait are stored before the attempt ends, and run once', async () => {
    const effects: string[] = [];
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        go: async (turn: TurnContext) => {
          const effect = (name: string) => (): Promise<void> => delay(5).then(() => void effects.push(name));
          const beside = async (): Promise<void> => {
            await turn.step('notify', effect('notify'));
            await turn.step('note', effect('note'));
          };
          const [answer] = await Promise.all([turn.waitFor<string>('answer'), beside()]);
          return reply(answer);
        },
      },
    });
    const { session, handle, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const result = handle(desk).execute('go', { sessionId });
    const { id } = await waitingTurn(turns, sessionId);
    await turns.signal(id, 'answer', 'yes');

    expect(await result).toMatchObject({ reply: 'yes' });
    expect(effects).toEqual(['notify', 'note']);
  });

  it('TRN-13 a cancel ends it, and the lane continues', async () => {
    const { desk } = refundDesk();
    const { session, handle, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const refund = rejection(handle(desk).execute('refund', { sessionId }), TurnCancelledError);
    const { id } = await waitingTurn(turns, sessionId);
    const later = handle(desk).execute('hello', { sessionId });

    expect(await turns.cancel(id)).toMatchObject({ status: 'cancelled' });

    await refund;
    expect(await later).toMatchObject({ reply: 'hello', turnIndex: 0 });
  });

  it('TRN-13 the end of its session ends it', async () => {
    const { desk } = refundDesk();
    const { session, sessions, handle, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const refund = rejection(handle(desk).execute('refund', { sessionId }), TurnCancelledError);
    const { id } = await waitingTurn(turns, sessionId);
    await sessions.expire(sessionId);
    await refund;
    await expect(turns.signal(id, 'approval', { granted: true })).rejects.toThrow(TurnSettledError);
  });

  it('TRN-06 a message that interrupts ends a turn that waits', async () => {
    const { desk } = refundDesk();
    const { session, handle, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const refund = handle(desk).execute('refund', { sessionId });
    refund.catch(() => undefined);
    await waitingTurn(turns, sessionId);

    const next = await handle(desk).execute('hello', { sessionId, whenBusy: 'interrupt' });

    expect(next).toMatchObject({ reply: 'hello' });
    expect((await turns.list({ sessionId }))[0]).toMatchObject({ status: 'cancelled' });
  });
});

describe('waitFor', () => {
  it('TRN-13 refuses a payload that does not fit the schema: the turn fails', async () => {
    const { desk } = refundDesk();
    const { session, handle, turns } = await startApplication({
      adapter: memoryAdapter(),
      orchestrators: [desk],
    });
    const sessionId = await session();
    const refund = rejection(handle(desk).execute('refund', { sessionId }), TurnFailedError);
    const { id } = await waitingTurn(turns, sessionId);
    await turns.signal(id, 'approval', { granted: 'perhaps' });

    const error = await refund;
    expect(error.failure).toMatchObject({ code: 'INVALID_INPUT', details: { path: 'signal approval.granted' } });
  });

  it('TRN-13 waits for several signals in several places, in any order', async () => {
    const desk = defineOrchestrator({
      name: 'desk',
      route: () => ['legal', 'manager'],
      intents: {
        legal: async (turn: TurnContext) => reply(`legal ${String(await turn.waitFor<number>('legal'))}`),
        manager: async (turn: TurnContext) => {
          const first = await turn.waitFor<number>('manager');
          const second = await turn.waitFor<number>('manager again');
          return reply(`manager ${String(first)} ${String(second)}`);
        },
      },
    });
    const { session, handle, turns } = await startApplication({
      adapter: memoryAdapter(),
      orchestrators: [desk],
    });
    const sessionId = await session();
    const result = handle(desk).execute('go', { sessionId });
    const { id } = await waitingTurn(turns, sessionId);
    for (const name of ['manager again', 'legal', 'manager']) await turns.signal(id, name, name.length);

    expect((await result).reply).toMatch(/legal 5[^]*manager 7 13/);
  });

  it('TRN-13 a step that fails beside a wait fails the attempt', async () => {
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        go: async (turn: TurnContext) => {
          const failing = async (): Promise<void> => {
            await delay(5);
            if (turn.attempt === 1) throw new Error('not today');
          };
          const [answer] = await Promise.all([turn.waitFor<string>('answer'), turn.step('notify', failing)]);
          return reply(answer);
        },
      },
    });
    const { session, handle, turns } = await startApplication({
      orchestrators: [desk],
      turns: { retry: { backoff: { delayMs: 1 } } },
    });
    const sessionId = await session();
    const result = handle(desk).execute('go', { sessionId });
    const { id } = await waitingTurn(turns, sessionId);
    expect(await turns.get(id)).toMatchObject({ failures: 1 });
    await turns.signal(id, 'answer', 'yes');
    expect(await result).toMatchObject({ reply: 'yes' });
  });

  it('TRN-13 refuses to wait inside a step', async () => {
    const desk = defineOrchestrator({
      name: 'desk',
      intents: { go: (turn: TurnContext) => turn.step('ask', () => turn.waitFor('answer')).then(() => undefined) },
    });
    const { session, handle } = await startApplication({ orchestrators: [desk] });
    const error = await rejection(handle(desk).execute('go', { sessionId: await session() }), TurnFailedError);
    expect(error.failure).toMatchObject({ code: 'INVALID_INPUT', details: { path: 'waitFor' } });
  });

  it('TRN-13 waits in the route, which then runs again', async () => {
    const routed: string[] = [];
    const desk = defineOrchestrator({
      name: 'desk',
      route: async (turn: TurnContext) => {
        routed.push('routed');
        return turn.waitFor<string>('where');
      },
      intents: { here: () => reply('here'), there: () => reply('there') },
    });
    const { session, handle, turns } = await startApplication({ orchestrators: [desk] });
    const sessionId = await session();
    const result = handle(desk).execute('go', { sessionId });
    const { id } = await waitingTurn(turns, sessionId);
    await turns.signal(id, 'where', 'there');
    expect(await result).toMatchObject({ reply: 'there' });
    expect(routed).toEqual(['routed', 'routed']);
  });

  it('TRN-13 code outside steps runs again, and neither catch nor finally runs while it waits', async () => {
    const ran: string[] = [];
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        go: async (turn: TurnContext) => {
          ran.push('before');
          try {
            ran.push(await turn.waitFor<string>('answer'));
          } catch {
            ran.push('catch');
          } finally {
            ran.push('finally');
          }
        },
      },
    });
    const { session, handle, turns } = await startApplication({ orchestrators: [desk] });
    const sessionId = await session();
    const result = handle(desk).execute('go', { sessionId });
    const { id } = await waitingTurn(turns, sessionId);
    expect(ran).toEqual(['before']);
    await turns.signal(id, 'answer', 'yes');
    await result;
    expect(ran).toEqual(['before', 'before', 'yes', 'finally']);
  });

  it('TRN-13 another intent that fails beside a wait fails the attempt, and nothing waits', async () => {
    const desk = defineOrchestrator({
      name: 'desk',
      route: () => ['waits', 'fails'],
      intents: {
        waits: async (turn: TurnContext) => void (await turn.waitFor('answer')),
        fails: () => Promise.reject(new PermanentTurnError('no')),
      },
    });
    const { session, handle } = await startApplication({ orchestrators: [desk] });
    const error = await rejection(handle(desk).execute('go', { sessionId: await session() }), TurnFailedError);
    expect(error.failure).toMatchObject({ message: 'no' });
  });

  it.each(['before', 'after'] as const)(
    'TRN-13 waits though the store failed %s the turn awaits the signal, and what runs beside it is stopped',
    async (when) => {
      const adapter = memoryAdapter();
      const wait = adapter.turns.wait.bind(adapter.turns);
      let calls = 0;
      adapter.turns.wait = async (...args) => {
        calls += 1;
        const answer = calls > 1 || when === 'after' ? await wait(...args) : null;
        if (calls === 1 || !answer) throw new StoreUnavailableError('The store is away for a moment.');
        return answer;
      };
      const errors: unknown[] = [];
      const nothing = (): void => undefined;
      const logger = { log: nothing, warn: nothing, error: (error: unknown) => void errors.push(error) };
      let signal: AbortSignal | undefined;
      const desk = defineOrchestrator({
        name: 'desk',
        intents: {
          go: async (turn: TurnContext) => {
            signal ??= turn.signal;
            return reply(await turn.waitFor<string>('answer'));
          },
        },
      });
      const { session, handle, turns } = await startApplication({ adapter, orchestrators: [desk], logger });
      const sessionId = await session();
      const result = handle(desk).execute('go', { sessionId });
      const { id } = await waitingTurn(turns, sessionId);
      await eventually(() => signal?.aborted);
      await turns.signal(id, 'answer', 'yes');
      expect(await result).toMatchObject({ reply: 'yes' });
      expect(await turns.get(id)).toMatchObject({ failures: 0 });
      expect(errors).toEqual([]);
    },
  );

  it('TRN-09 TRN-13 a cancel while steps beside a wait are stored ends the turn', async () => {
    const [begun, cancelled] = [gate(), gate()];
    const after: unknown[] = [];
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        go: async (turn: TurnContext) => {
          const slow = turn.step('slow', () => {
            begun.open();
            return cancelled.pass();
          });
          slow.catch(() => undefined);
          await turn.waitFor('answer').catch((error: unknown) => after.push(error));
        },
      },
    });
    const { session, handle, turns } = await startApplication({ orchestrators: [desk] });
    const sessionId = await session();
    const result = rejection(handle(desk).execute('go', { sessionId }), TurnCancelledError);
    await begun.pass();
    const [{ id }] = await turns.list({ sessionId });
    await turns.cancel(id);
    await result;
    cancelled.open();
    await eventually(() => after.length === 1);
    expect(after[0]).toMatchObject({ code: 'TURN_STOPPED' });
  });

  it('TRN-13 resumes after a deploy, in a newer version', async () => {
    const adapter = memoryAdapter();
    const version = (name: string) =>
      defineOrchestrator({
        name: 'desk',
        version: name,
        intents: {
          go: async (turn: TurnContext) => {
            const made = await turn.step('make', () => name);
            return reply(`${made} ${await turn.waitFor<string>('answer')} ${name}`);
          },
        },
      });
    const old = await startApplication({ adapter, orchestrators: [version('1')] });
    const sessionId = await old.session();
    const { id } = await old.turns.submit('desk', 'go', { sessionId });
    await waitingTurn(old.turns, sessionId);
    await old.close();

    const next = await startApplication({ adapter, orchestrators: [version('2')] });
    await next.turns.signal(id, 'answer', 'yes');
    expect(await next.turns.result(id)).toMatchObject({ reply: '1 yes 2' });
  });

  it('TRN-13 what runs beside a wait is stopped, and its failure is nobody’s', async () => {
    let beside: Promise<unknown> = Promise.resolve();
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        go: async (turn: TurnContext) => {
          beside = new Promise((_, reject) => {
            turn.signal.addEventListener('abort', () => reject(turn.signal.reason as Error), { once: true });
          });
          await Promise.all([turn.waitFor('go'), beside]);
        },
      },
    });
    const { session, handle, turns } = await startApplication({
      adapter: memoryAdapter(),
      orchestrators: [desk],
    });
    const sessionId = await session();
    await handle(desk).submit('go', { sessionId });
    await waitingTurn(turns, sessionId);
    await expect(beside).rejects.toMatchObject({ code: 'TURN_STOPPED' });
    expect((await turns.list({ sessionId }))[0]).toMatchObject({ status: 'waiting', failures: 0 });
  });

  it.each([0, -1, 1.5, NaN, Infinity])('TRN-13 refuses timeoutMs: %p', async (timeoutMs) => {
    const { desk } = refundDesk({ timeoutMs });
    const { session, handle } = await startApplication({ adapter: memoryAdapter(), orchestrators: [desk] });
    const error = await rejection(handle(desk).execute('refund', { sessionId: await session() }), TurnFailedError);
    expect(error.failure).toMatchObject({ code: 'INVALID_INPUT', details: { path: 'waitFor.timeoutMs' } });
  });

  it.each<[string, object]>([
    ['waitFor.timeout is not a known key', { timeout: 5000 }],
    ['waitFor.onTimeout must be a function that returns the result after the timeout.', { onTimeout: 'denied' }],
    ['waitFor.schema must be a class.', { schema: { type: 'object' } }],
  ])('TRN-13 refuses options at the call: %s', async (problem, options) => {
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: (turn: TurnContext) => turn.waitFor<string>('go', options).catch((error: Error) => error.message),
      },
    });
    const { session, handle } = await startApplication({ adapter: memoryAdapter(), orchestrators: [desk] });
    const { reply: text } = await handle(desk).execute('refund', { sessionId: await session() });
    expect(text).toContain(problem);
  });

  it('TRN-13 validates the arguments of signal', async () => {
    const { turns } = await startApplication({ adapter: memoryAdapter() });
    await expect(turns.signal('none', 'go')).rejects.toThrow(TurnNotFoundError);
    await expect(turns.signal('none', '')).rejects.toThrow(InvalidInputError);
    await expect(turns.signal('none', 'go', new Date())).rejects.toMatchObject({ code: 'STATE_NOT_SERIALIZABLE' });
    await expect(turns.signal('none', 'go', 'x'.repeat(300_000))).rejects.toMatchObject({ code: 'TOO_LARGE' });
  });
});

async function waitingTurn(
  turns: Awaited<ReturnType<typeof startApplication>>['turns'],
  sessionId: string,
): Promise<{ readonly id: string }> {
  return eventually(async () => (await turns.list({ sessionId, status: 'waiting' }))[0]);
}

/** Looks up an order, asks for approval, pays; everything else is repeated. */
function refundDesk({
  timeoutMs,
  onTimeout,
  holdLookUp = false,
}: { timeoutMs?: number; onTimeout?: () => Approval; holdLookUp?: boolean } = {}) {
  const effects: string[] = [];
  let start!: (turnId: string) => void;
  let goOn!: () => void;
  const started = new Promise<string>((resolve) => (start = resolve));
  const open = new Promise<void>((resolve) => (goOn = resolve));
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      answer: async (turn: TurnContext) => {
        if (turn.input.text !== 'refund') return turn.input.text;
        await turn.step('look up', async () => {
          effects.push('look up');
          start(turn.id);
          if (holdLookUp) await open;
        });
        const options = {
          schema: Approval,
          ...(timeoutMs === undefined ? {} : { timeoutMs }),
          ...(onTimeout ? { onTimeout } : {}),
        };
        const approval = await turn.waitFor<Approval>('approval', options);
        if (!approval.granted) return reply('Declined.');
        await turn.step('pay', () => void effects.push('pay'));
        return reply('Paid.');
      },
    },
  });
  return { desk, effects, looking: { started, goOn } };
}
