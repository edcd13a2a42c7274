import {
  defineOrchestrator,
  PermanentTurnError,
  reply,
  SessionsError,
  type TurnContext,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { InProcessQueue } from '../../lib/queue/in-process/in-process-queue.js';
import { gate, LIVE_STORES, rejection, startApplication } from '../support/running-application.js';
import { eventually } from '../support/eventually.js';

describe.each(LIVE_STORES)('retries over $name', ({ open }) => {
  it('TRN-08 retries after a fixed delay, and the lane waits meanwhile', async () => {
    const { desk, attempts } = failingDesk((turn) => turn.input.text === 'fails twice' && turn.attempt <= 2);
    const { session, handle, turns } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { attempts: 3, backoff: { type: 'fixed', delayMs: 60 } } },
    });
    const sessionId = await session();

    const first = await handle(desk).submit('fails twice', { sessionId });
    await handle(desk).execute('waits', { sessionId });

    expect(attempts.map(({ text, attempt }) => `${text} ${attempt}`)).toEqual([
      'fails twice 1',
      'fails twice 2',
      'fails twice 3',
      'waits 1',
    ]);
    expect(pausesOf(attempts.slice(0, 3)).every((ms) => ms >= 59)).toBe(true);
    expect(await turns.result(first.id)).toMatchObject({ turnIndex: 0, reply: 'done' });
    const [settled] = await turns.list({ sessionId });
    expect(settled).toMatchObject({ status: 'awaiting-input', failures: 2 });
    expect(settled).not.toHaveProperty('error');
  });

  it('TRN-08 doubles an exponential pause with each failure', async () => {
    const { desk, attempts } = failingDesk((turn) => turn.attempt <= 3);
    const { session, handle } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { attempts: 4, backoff: { type: 'exponential', delayMs: 40, maxDelayMs: 80 } } },
    });
    await handle(desk).execute('hi', { sessionId: await session() });
    const pauses = pausesOf(attempts);
    expect(pauses).toHaveLength(3);
    // At least half of 40, 80 and 80 (the limit) milliseconds.
    for (const [i, atLeast] of [20, 40, 40].entries()) expect(pauses[i]).toBeGreaterThanOrEqual(atLeast - 1);
  });

  it('TRN-08 shows the last error and the due time while a retry is pending; other sessions continue', async () => {
    const { desk } = failingDesk((turn) => turn.input.text === 'fails' && turn.attempt === 1);
    const { session, handle, turns } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { backoff: { type: 'fixed', delayMs: 60_000 } } },
    });
    const { id } = await handle(desk).submit('fails', { sessionId: await session() });
    const due = await eventually(async () => {
      const turn = await turns.get(id);
      return turn?.failures === 1 ? turn : null;
    });
    expect(due).toMatchObject({ status: 'queued', error: { name: 'Error', message: 'attempt 1 of fails' } });
    expect(Date.parse(due.dueAt ?? '') - Date.parse(due.startedAt ?? '')).toBeGreaterThanOrEqual(59_000);
    await handle(desk).execute('works', { sessionId: await session() });
    expect(await turns.get(id)).toEqual(due);
  });

  it('TRN-08 fails a poison turn after the last attempt, and the lane moves on', async () => {
    const { desk, attempts } = failingDesk((turn) => turn.input.text === 'poison');
    const { session, handle, turns } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { attempts: 3, backoff: { type: 'fixed', delayMs: 1 } } },
    });
    const sessionId = await session();
    const poison = handle(desk).execute('poison', { sessionId });
    const next = handle(desk).execute('next', { sessionId });

    const error = await rejection(poison, TurnFailedError);
    expect(error).toMatchObject({
      code: 'TURN_FAILED',
      sessionId,
      failure: { name: 'Error', message: 'attempt 3 of poison' },
    });
    expect(error.message).not.toContain('attempt 3 of poison');
    expect(await turns.get(error.turnId)).toMatchObject({ status: 'failed', failures: 3, error: error.failure });
    expect(await next).toMatchObject({ turnIndex: 0 });
    expect(attempts).toHaveLength(4);
  });

  it('TRN-08 does not retry permanent failures', async () => {
    const { desk, attempts } = failingDesk(({ input }) => {
      if (input.text === 'ours') throw new PermanentTurnError('no such order');
      if (input.text === 'own')
        throw Object.assign(new RangeError('out of stock'), { permanent: true, code: 'E_STOCK' });
      return false;
    });
    const { session, handle } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const ours = await rejection(handle(desk).execute('ours', { sessionId }), TurnFailedError);
    const own = await rejection(handle(desk).execute('own', { sessionId }), TurnFailedError);
    expect(ours.failure).toEqual({
      name: 'PermanentTurnError',
      message: 'no such order',
      code: 'PERMANENT_TURN_ERROR',
      details: {},
    });
    expect(own.failure).toEqual({ name: 'RangeError', message: 'out of stock', code: 'E_STOCK' });
    expect(attempts).toHaveLength(2);
  });

  it('TRN-08 reports the code and fields of a class that extends PermanentTurnError', async () => {
    class OrderGoneError extends PermanentTurnError {
      override readonly code = 'ORDER_GONE';

      constructor(readonly orderId: string) {
        super(`Order ${orderId} does not exist.`);
      }
    }
    const thrown = new OrderGoneError('7');
    expect([PermanentTurnError, SessionsError].map((each) => each.isInstance(thrown))).toEqual([true, true]);
    expect([thrown.code, thrown.getStatus()]).toEqual(['ORDER_GONE', 500]);

    const { desk, attempts } = failingDesk(() => {
      throw thrown;
    });
    const { session, handle } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const error = await rejection(handle(desk).execute('go', { sessionId: await session() }), TurnFailedError);
    expect(error.failure).toEqual({
      name: 'OrderGoneError',
      message: 'Order 7 does not exist.',
      code: 'ORDER_GONE',
      details: { orderId: '7' },
    });
    expect(attempts).toHaveLength(1);
  });

  it('TRN-08 attempts: 1 means no second one', async () => {
    const { desk, attempts } = failingDesk(() => true);
    const { session, handle } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { attempts: 1 } },
    });
    await rejection(handle(desk).execute('hi', { sessionId: await session() }), TurnFailedError);
    expect(attempts).toHaveLength(1);
  });

  it('TRN-08 does not count a release: a turn that this process cannot run keeps its attempts', async () => {
    const { pass, open: release } = gate();
    const old = defineOrchestrator({ name: 'desk', version: '1', intents: { answer: () => reply('old') } });
    const current = defineOrchestrator({
      name: 'desk',
      version: '2',
      intents: { answer: async () => (await pass(), reply('current')) },
    });
    const adapter = open();
    if (adapter.close) return; // One process at a time: there is no other that could run it.
    const newer = await startApplication({ adapter, orchestrators: [current], turns: { concurrency: 1 } });
    const queue = new InProcessQueue(1);
    const older = await startApplication({ adapter, orchestrators: [old], turns: { queue } });

    // The newer process's only slot is taken, so that the older one gets the turn when it is notified.
    await newer.handle(current).submit('first', { sessionId: await newer.session() });
    const offered = await newer.handle(current).submit('second', { sessionId: await newer.session() });
    await queue.notify(offered.sessionId);
    await eventually(async () => (await older.turns.get(offered.id))?.startedAt !== undefined);
    release();
    expect(await newer.turns.result(offered.id)).toMatchObject({ reply: 'current' });
    expect(await newer.turns.get(offered.id)).toMatchObject({ failures: 0 });
  });
});

const ODD_THROWS: readonly (readonly [string, unknown, { name: string; message: string; code?: string }])[] = [
  ['a text', 'just text', { name: 'Error', message: 'just text' }],
  ['nothing', undefined, { name: 'Error', message: 'Thrown: undefined' }],
  ['an object like an error', { name: 'ApiError', message: 'rate limited', code: '429' }, { name: 'ApiError', message: 'rate limited', code: '429' }], // prettier-ignore
  [
    'an error without a message',
    Object.assign(new Error('x'), { message: undefined }),
    { name: 'Error', message: 'Thrown: object' },
  ],
  ['a very long message', new Error('x'.repeat(5000)), { name: 'Error', message: `${'x'.repeat(2000)}...` }],
];

it.each(ODD_THROWS)('TRN-08 keeps a record of %s that was thrown', async (_, thrown, failure) => {
  const { desk } = failingDesk(() => {
    throw thrown;
  });
  const { session, handle } = await startApplication({ orchestrators: [desk], turns: { retry: { attempts: 1 } } });
  const error = await rejection(handle(desk).execute('hi', { sessionId: await session() }), TurnFailedError);
  expect(error.failure).toEqual(failure);
});

interface Attempt {
  readonly text: string;
  readonly attempt: number;
  readonly at: number;
}

/** Fails as `fails` says, and writes down each attempt. */
function failingDesk(fails: (turn: TurnContext) => boolean) {
  const attempts: Attempt[] = [];
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      answer: (turn) => {
        const { attempt, input } = turn;
        attempts.push({ text: input.text, attempt, at: performance.now() });
        if (fails(turn)) throw new Error(`attempt ${attempt} of ${input.text}`);
        return reply('done');
      },
    },
  });
  return { desk, attempts };
}

/** Milliseconds between attempts. */
function pausesOf(attempts: readonly Attempt[]): number[] {
  return attempts.slice(1).map(({ at }, i) => at - attempts[i].at);
}
