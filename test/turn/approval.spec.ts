import { IsBoolean } from 'class-validator';
import {
  defineOrchestrator,
  InvalidInputError,
  memoryAdapter,
  reply,
  type TurnContext,
  TurnFailedError,
  TurnNotFoundError,
  TurnSettledError,
} from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { LIVE_STORES, rejection, startApplication } from '../support/running-application.js';

class Approval {
  @IsBoolean()
  granted!: boolean;
}

describe.each(LIVE_STORES)('waiting for a signal over $name', ({ open }) => {
  it('TRN-13 parks the turn, and goes on where it was when the signal comes', async () => {
    const { desk, effects } = refundDesk();
    const { session, handle, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
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

  it('TRN-13 holds no worker: other sessions go on, and a later message of the session waits', async () => {
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
    const { session, handle, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const result = handle(desk).execute('refund', { sessionId });
    const id = await looking.started;

    expect(await turns.signal(id, 'approval', { granted: true })).toMatchObject({ accepted: true });
    expect(await turns.signal(id, 'approval', { granted: false })).toMatchObject({ accepted: false });
    looking.goOn();

    expect(await result).toMatchObject({ reply: 'Paid.' });
    expect(effects).toEqual(['look up', 'pay']);
  });

  it('TRN-13 fails the turn when the signal does not come in time, at once and for good', async () => {
    const { desk } = refundDesk({ timeoutMs: 30 });
    const { session, handle, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();

    const error = await rejection(handle(desk).execute('refund', { sessionId }), TurnFailedError);

    expect(error.failure).toMatchObject({ code: 'TURN_SIGNAL_TIMEOUT', details: { signal: 'approval' } });
    const [turn] = await turns.list({ sessionId });
    expect(turn).toMatchObject({ status: 'failed', failures: 1 });
    await expect(turns.signal(turn.id, 'approval', { granted: true })).rejects.toThrow(TurnSettledError);
  });

  it('TRN-13 goes on with onTimeout instead', async () => {
    const { desk } = refundDesk({ timeoutMs: 30, onTimeout: () => ({ granted: false }) });
    const { session, handle } = await startApplication({ adapter: open(), orchestrators: [desk] });
    expect(await handle(desk).execute('refund', { sessionId: await session() })).toMatchObject({ reply: 'Declined.' });
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
    const refund = handle(desk).execute('refund', { sessionId });
    const { id } = await waitingTurn(turns, sessionId);
    await turns.signal(id, 'approval', { granted: 'perhaps' });

    const error = await rejection(refund, TurnFailedError);
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

  it('TRN-13 checks what it is signalled with', async () => {
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
