import {
  defineOrchestrator,
  IdempotencyConflictError,
  LaneFullError,
  memoryAdapter,
  type OrchestratorEvent,
  turnOutcome,
  PermanentTurnError,
  reply,
  TooLargeError,
  type Turn,
  TurnCancelledError,
  TurnFailedError,
  TurnSupersededError,
} from 'nestjs-agent-sessions';
import { gate, LIVE_STORES, rejection, startApplication } from '../support/running-application.js';
import { eventually } from '../support/eventually.js';

describe.each(LIVE_STORES)('the record of a turn over $name', ({ open }) => {
  it('TRN-01 goes from queued through running to awaiting-input, and says when', async () => {
    const { desk, release } = heldDesk();
    const { turns, session, handle } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();

    const first = await handle(desk).submit('one', { sessionId });
    const second = await handle(desk).submit('two', { sessionId });
    expect([first.status, second.status]).toEqual(['queued', 'queued']);
    expect([first.position, second.position]).toEqual([1, 2]);
    await eventually(async () => (await turns.get(first.id))?.status === 'running');
    expect(await turns.get(second.id)).toMatchObject({ status: 'queued', failures: 0 });
    expect(await turns.get(second.id)).not.toHaveProperty('startedAt');

    release();
    expect(await turns.result(second.id)).toEqual({
      id: second.id,
      sessionId,
      status: 'awaiting-input',
      turnIndex: 1,
      reply: 'You said two.',
    });
    const settled = await turns.list({ sessionId });
    expect(settled).toMatchObject([
      { id: first.id, status: 'awaiting-input', turnIndex: 0, reply: { text: 'You said one.' } },
      { id: second.id, status: 'awaiting-input', turnIndex: 1, reply: { text: 'You said two.' } },
    ]);
    for (const { acceptedAt, startedAt, settledAt } of settled) {
      const times = [acceptedAt, startedAt, settledAt];
      expect(times).toEqual([...times].sort());
    }
  });

  it('TRN-01 a terminal turn never changes, however it ended', async () => {
    const { desk, release } = heldDesk();
    const { turns, session, handle } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const submit = (text: string) => handle(desk).submit(text, { sessionId });

    const waits = await submit('wait');
    await eventually(async () => (await turns.get(waits.id))?.status === 'running');
    const superseded = await submit('never runs');
    const goesOn = await handle(desk).submit('instead', { sessionId, whenBusy: 'latest' });
    const cancelled = await submit('cancelled');
    await turns.cancel(cancelled.id);
    const failed = await submit('fail');
    const completed = await submit('bye');
    release();

    await turns.result(completed.id);
    const ended = await turns.list({ sessionId });
    expect(statuses(ended)).toEqual({
      [waits.id]: 'awaiting-input',
      [superseded.id]: 'superseded',
      [goesOn.id]: 'awaiting-input',
      [cancelled.id]: 'cancelled',
      [failed.id]: 'failed',
      [completed.id]: 'completed',
    });
    for (const turn of ended) expect(await turns.cancel(turn.id)).toEqual(turn);
    expect(await turns.list({ sessionId })).toEqual(ended);
    expect((await rejection(turns.result(superseded.id), TurnSupersededError)).supersededBy).toBe(goesOn.id);
    await rejection(turns.result(cancelled.id), TurnCancelledError);
    await rejection(turns.result(failed.id), TurnFailedError);
  });

  it('TRN-05 attaches to the turn that runs, and gives the stored result later', async () => {
    const { desk, release, handled } = heldDesk();
    const { turns, session, handle } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const say = () => handle(desk).execute('one', { sessionId, idempotencyKey: 'k1' });

    const first = say();
    await eventually(() => handled.length === 1);
    const second = say();
    const queued = await handle(desk).submit('one', { sessionId, idempotencyKey: 'k1' });
    expect(queued.status).toBe('running');
    release();

    const result = await first;
    expect(await second).toEqual(result);
    expect(await say()).toEqual(result);
    expect(handled).toEqual(['one']);
    expect(await turns.list({ sessionId })).toHaveLength(1);
  });

  it('TRN-05 BOT-02 a caller that repeats its key gives its context to attempts that are still to come', async () => {
    const contexts: unknown[] = [];
    const begun = gate();
    const failing = gate();
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: async ({ attempt, context }) => {
          contexts.push(context);
          begun.open();
          if (attempt > 1) return 'done';
          await failing.pass();
          throw new Error('not yet');
        },
      },
    });
    const { handle, session } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { backoff: { delayMs: 1 } } },
    });
    const known = { sessionId: await session(), idempotencyKey: 'k1' };
    const { id } = await handle(desk).submit('hi', known);
    await begun.pass();
    const events: string[] = [];
    const onEvent = ({ type }: OrchestratorEvent): void => void events.push(type);
    const again = await handle(desk).submit('hi', { ...known, context: { from: 'the second call' }, onEvent });
    expect(again.id).toBe(id);
    failing.open();
    expect(await handle(desk).execute('hi', known)).toMatchObject({ id, reply: 'done' });
    expect(contexts).toEqual([{}, { from: 'the second call' }]);
    await eventually(() => events.at(-1) === 'turn-settled');
  });

  it('TRN-05 rejects a known key with another input or orchestrator; keys are scoped to their session', async () => {
    const { desk, release } = heldDesk();
    const other = defineOrchestrator({ name: 'other', intents: { answer: () => reply('other') } });
    const { turns, session, handle } = await startApplication({ adapter: open(), orchestrators: [desk, other] });
    const [sessionId, elsewhere] = [await session(), await session()];
    release();

    const known = await handle(desk).execute('one', { sessionId, idempotencyKey: 'k1' });
    const otherInput = handle(desk).execute('two', { sessionId, idempotencyKey: 'k1' });
    const conflict = await rejection(otherInput, IdempotencyConflictError);
    expect(conflict).toMatchObject({ code: 'IDEMPOTENCY_CONFLICT', sessionId, turnId: known.id });
    const otherHandler = handle(other).execute('one', { sessionId, idempotencyKey: 'k1' });
    await rejection(otherHandler, IdempotencyConflictError);
    expect(await turns.list({ sessionId })).toHaveLength(1);

    const apart = await handle(desk).execute('two', { sessionId: elsewhere, idempotencyKey: 'k1' });
    expect(apart).toMatchObject({ sessionId: elsewhere, reply: 'You said two.' });
  });

  it('TRN-07 rejects turns above the limit of queued turns, and stores none of them', async () => {
    const { desk, release } = heldDesk();
    const { turns, session, handle } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { maxQueuedPerSession: 2 },
    });
    const sessionId = await session();
    const submit = (text: string) => handle(desk).submit(text, { sessionId });

    const running = await submit('runs');
    await eventually(async () => (await turns.get(running.id))?.status === 'running');
    await submit('queued 1');
    await submit('queued 2');
    const full = await rejection(submit('too many'), LaneFullError);
    expect(full).toMatchObject({ code: 'LANE_FULL', sessionId, limit: 2, retryAfterMs: expect.any(Number) as number });
    expect(await turns.list({ sessionId })).toHaveLength(3);

    release();
    await eventually(async () => (await turns.list({ sessionId, status: ['queued', 'running'] })).length === 0);
    expect((await submit('there is room again')).position).toBe(4);
  });

  it('TRN-07 rejects an input, a history or attributes that are too large, and does not store them', async () => {
    const { desk, handled } = heldDesk();
    const { turns, session, handle } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { maxInputBytes: 1000 },
    });
    const sessionId = await session();
    const large = 'ä'.repeat(600);

    const input = await rejection(handle(desk).execute(large, { sessionId }), TooLargeError);
    expect(input).toMatchObject({ code: 'TOO_LARGE', maxBytes: 1000 });
    expect(input.bytes).toBeGreaterThan(1200);
    const history = [{ role: 'user' as const, content: large }];
    await rejection(handle(desk).execute('hi', { sessionId, history }), TooLargeError);
    const attributes = { large: 'x'.repeat(20_000) };
    await rejection(handle(desk).execute('hi', { sessionId, attributes }), TooLargeError);

    expect(await turns.list({ sessionId })).toEqual([]);
    expect(handled).toEqual([]);
  });
});

it('TRN-01 stamps every change by the clock of the store, not of the process', async () => {
  const clock = () => Date.now() + 1_000_000_000_000;
  const { desk, release } = heldDesk();
  const { turns, session, handle } = await startApplication({
    adapter: memoryAdapter({ clock }),
    orchestrators: [desk],
  });
  release();
  const { id } = await handle(desk).execute('one', { sessionId: await session() });
  const turn = (await turns.get(id)) as Turn;
  for (const time of [turn.acceptedAt, turn.startedAt, turn.settledAt]) {
    expect(Math.abs(Date.parse(time ?? '') - clock())).toBeLessThan(60_000);
  }
});

/** Answers once the gate is open; 'fail' and 'bye' end as they say. */
function heldDesk() {
  const { pass, open } = gate();
  const handled: string[] = [];
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      answer: async ({ input: { text } }) => {
        handled.push(text);
        await pass();
        if (text === 'fail') throw new PermanentTurnError('as asked');
        if (text === 'bye') return turnOutcome({ status: 'completed' });
        return reply(`You said ${text}.`);
      },
    },
  });
  return { desk, handled, release: open };
}

function statuses(turns: readonly Turn[]): Record<string, string> {
  return Object.fromEntries(turns.map(({ id, status }) => [id, status]));
}
