import { hostname } from 'node:os';
import {
  defineOrchestrator,
  InvalidInputError,
  LaneDrainingError,
  LaneService,
  reply,
  SessionNotFoundError,
  type TurnContext,
  TurnCancelledError,
} from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { gate, LASTING_STORES, LIVE_STORES, rejection, startApplication } from '../support/running-application.js';

describe.each(LIVE_STORES)('holding lanes over $name', ({ open }) => {
  it('TRN-11 a paused lane runs nothing until it is resumed; others continue', async () => {
    const { desk, heard } = hearingDesk();
    const { session, handle, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const [held, other] = [await session(), await session()];
    await turns.lanes.pause({ sessionId: held });

    const first = await handle(desk).submit('first', { sessionId: held });
    const second = handle(desk).execute('second', { sessionId: held });
    await eventually(async () => (await turns.lanes.get(held)).queued === 2);
    await handle(desk).execute('elsewhere', { sessionId: other });
    expect(heard).toEqual(['elsewhere']);
    expect(await turns.lanes.get(held)).toMatchObject({ mode: 'paused', head: { status: 'queued', failures: 0 } });

    await turns.lanes.resume({ sessionId: held });
    expect(await second).toMatchObject({ reply: 'second' });
    expect(await turns.result(first.id)).toMatchObject({ reply: 'first' });
    expect(heard).toEqual(['elsewhere', 'first', 'second']);
    expect(await turns.lanes.get(held)).toEqual({ sessionId: held, mode: 'open', queued: 0 });
  });

  it('TRN-11 a turn that runs when its lane is paused settles, and the next is not handed over', async () => {
    const { desk, heard, release } = hearingDesk();
    const { session, handle, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const running = handle(desk).execute('wait', { sessionId });
    await eventually(() => heard.length === 1);
    const next = handle(desk).execute('next', { sessionId });
    await eventually(async () => (await turns.lanes.get(sessionId)).queued === 1);
    await turns.lanes.pause({ sessionId });
    release();

    expect(await running).toMatchObject({ reply: 'wait' });
    expect(await turns.lanes.get(sessionId)).toMatchObject({ queued: 1, head: { status: 'queued' } });
    await turns.lanes.resume({ sessionId });
    expect(await next).toMatchObject({ reply: 'next', turnIndex: 1 });
  });

  it('TRN-11 TRN-13 a signal to a paused lane is stored, and the turn resumes with it later', async () => {
    const desk = defineOrchestrator({
      name: 'desk',
      intents: { answer: async (turn: TurnContext) => reply(JSON.stringify(await turn.waitFor('approval'))) },
    });
    const { session, handle, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const { id } = await handle(desk).submit('hi', { sessionId });
    await eventually(async () => (await turns.get(id))?.status === 'waiting');
    expect((await turns.lanes.get(sessionId)).head).toMatchObject({ waitingFor: { signal: 'approval' } });
    await turns.lanes.pause({ sessionId });
    await turns.signal(id, 'approval', 'yes');

    expect(await turns.get(id)).toMatchObject({ status: 'queued' });
    await turns.lanes.resume({ sessionId });
    expect(await turns.result(id)).toMatchObject({ reply: '"yes"' });
  });

  it('TRN-11 a draining lane refuses what is new, answers for what it knows, and says when it is empty', async () => {
    const { desk, heard, release } = hearingDesk();
    const { session, handle, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const known = { sessionId, idempotencyKey: 'known' };
    const running = handle(desk).execute('wait', known);
    await eventually(() => heard.length === 1);
    expect(await turns.lanes.drain({ sessionId })).toBe(false);
    expect(await turns.lanes.drain({ sessionId }, { timeoutMs: 30 })).toBe(false);

    const error = await rejection(handle(desk).execute('new', { sessionId }), LaneDrainingError);
    expect(error).toMatchObject({ code: 'LANE_DRAINING', sessionId, retryAfterMs: 5000 });
    const again = handle(desk).execute('wait', known);
    const drained = turns.lanes.drain({ sessionId }, { timeoutMs: 60_000 });
    release();
    expect(await again).toEqual(await running);
    expect(await drained).toBe(true);
    expect(heard).toEqual(['wait']);

    await turns.lanes.resume({ sessionId });
    expect(await handle(desk).execute('new', { sessionId })).toMatchObject({ reply: 'new' });
  });

  it('TRN-11 all lanes are paused, drained and resumed together; a lane that is paused itself stays so', async () => {
    const { desk, heard } = hearingDesk();
    const { session, handle, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const [one, other] = [await session(), await session()];
    await turns.lanes.pause({ sessionId: one });
    await turns.lanes.pause({ all: true });
    await handle(desk).submit('held', { sessionId: one });
    const free = handle(desk).execute('free', { sessionId: other });
    await eventually(async () => (await turns.lanes.counts()).queued === 2);
    const counts = { mode: 'paused', lanes: 2, queued: 2, running: 0, waiting: 0 };
    const { acceptedAt } = (await turns.list({ sessionId: one }))[0];
    expect(await turns.lanes.counts()).toEqual({ ...counts, queuedSince: acceptedAt });

    await turns.lanes.resume({ all: true });
    expect(await free).toMatchObject({ reply: 'free' });
    expect(heard).toEqual(['free']);
    expect(await turns.lanes.list()).toMatchObject({ mode: 'open', lanes: [{ sessionId: one, mode: 'paused' }] });

    expect(await turns.lanes.drain({ all: true })).toBe(false);
    await rejection(handle(desk).submit('new', { sessionId: other }), LaneDrainingError);
    await turns.lanes.resume({ sessionId: one });
    expect(await turns.lanes.drain({ all: true }, { timeoutMs: 60_000 })).toBe(true);
    const idle = { mode: 'draining', lanes: 0, queued: 0, running: 0, waiting: 0, queuedSince: null };
    expect(await turns.lanes.counts()).toEqual(idle);
    await turns.lanes.resume({ all: true });
    expect(await handle(desk).execute('new', { sessionId: other })).toMatchObject({ reply: 'new' });
  });

  it('TRN-11 clearing cancels what waits, in one lane or in all, and tells their callers', async () => {
    const { desk, heard, release } = hearingDesk();
    const { session, handle, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const [one, other] = [await session(), await session()];
    const running = handle(desk).execute('wait', { sessionId: one });
    await eventually(() => heard.length === 1);
    await turns.lanes.pause({ sessionId: other });
    const waiting = [one, one, other].map((sessionId) => handle(desk).execute('queued', { sessionId }));
    const errors = waiting.map((each) => rejection(each, TurnCancelledError));
    await eventually(async () => (await turns.lanes.counts()).queued === 3);

    expect(await turns.lanes.clear({ sessionId: one })).toBe(2);
    expect(await turns.lanes.clear({ all: true })).toBe(1);
    expect(await turns.lanes.clear({ all: true })).toBe(0);
    await Promise.all(errors);
    release();
    expect(await running).toMatchObject({ reply: 'wait' });
    expect(heard).toEqual(['wait']);
  });

  it('TRN-11 shows which process runs a turn, and since when', async () => {
    const { desk, heard, release } = hearingDesk();
    const { session, handle, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const running = handle(desk).execute('wait', { sessionId });
    await eventually(() => heard.length === 1);

    const { head } = await turns.lanes.get(sessionId);
    expect(head).toMatchObject({ orchestrator: 'desk', status: 'running', failures: 0 });
    expect(head?.worker?.startsWith(`${hostname()}-${process.pid}-`)).toBe(true);
    expect((head?.leaseUntil ?? '') > (head?.startedAt ?? '')).toBe(true);
    expect(await turns.lanes.counts()).toMatchObject({ lanes: 1, running: 1, queued: 0, queuedSince: null });
    release();
    await running;
  });

  it('TRN-11 lists lanes page by page', async () => {
    const { desk } = hearingDesk();
    const { session, handle, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    await turns.lanes.pause({ all: true });
    const ids: string[] = [];
    for (let n = 0; n < 5; n += 1) ids.push(await session());
    for (const sessionId of ids) await handle(desk).submit('hi', { sessionId });

    const seen: string[] = [];
    for (let page = await turns.lanes.list({ limit: 2 }); page.lanes.length > 0;) {
      seen.push(...page.lanes.map(({ sessionId }) => sessionId));
      page = await turns.lanes.list({ limit: 2, after: seen[seen.length - 1] });
    }
    expect(seen).toEqual([...ids].sort());
    expect((await turns.lanes.list()).lanes).toHaveLength(5);
  });
});

describe.each(LASTING_STORES)('holding lanes of another process over $name', ({ create }) => {
  it('TRN-11 pause, resume and drain reach the process that runs turns', async () => {
    const connect = create();
    const { desk, heard, release } = hearingDesk();
    const worker = await startApplication({ adapter: connect(), orchestrators: [desk] });
    const operator = await startApplication({ adapter: connect(), orchestrators: [desk], role: 'submit' });
    const sessionId = await worker.session();
    const running = worker.handle(desk).execute('wait', { sessionId });
    await eventually(() => heard.length === 1);
    expect((await operator.turns.lanes.get(sessionId)).head?.worker).toMatch(
      new RegExp(`-${process.pid}-[0-9a-f]{12}$`),
    );

    await operator.turns.lanes.pause({ sessionId });
    const next = worker.handle(desk).execute('next', { sessionId });
    await eventually(async () => (await operator.turns.lanes.get(sessionId)).queued === 1);
    release();
    await running;
    expect(await operator.turns.lanes.get(sessionId)).toMatchObject({ mode: 'paused', head: { status: 'queued' } });
    await operator.turns.lanes.pause({ all: true });
    await operator.turns.lanes.resume({ sessionId });
    expect(heard).toEqual(['wait']);
    await operator.turns.lanes.drain({ all: true });
    expect(await next).toMatchObject({ reply: 'next' });
    await rejection(worker.handle(desk).submit('new', { sessionId }), LaneDrainingError);
    await operator.turns.lanes.resume({ all: true });
    expect(await worker.handle(desk).execute('new', { sessionId })).toMatchObject({ reply: 'new' });
  });
});

describe('what is asked of lanes', () => {
  it.each([
    undefined,
    null,
    {},
    [],
    'all',
    { all: false },
    { all: 'true' },
    { sessionId: undefined },
    { sessionId: '' },
    { sessionId: null },
    { sessionId: 's', all: true },
    { all: true, other: 1 },
  ])('TRN-11 touches nothing when the scope is %j', async (scope) => {
    const { desk } = hearingDesk();
    const { turns, sessions, handle } = await startApplication({ orchestrators: [desk] });
    const { id: sessionId } = await sessions.create({ id: 's', userId: 'ann' });
    await turns.lanes.pause({ sessionId });
    await handle(desk).submit('hi', { sessionId });

    for (const method of ['pause', 'drain', 'resume', 'clear'] as const) {
      await rejection(turns.lanes[method](scope as never), InvalidInputError);
    }
    expect(await turns.lanes.list()).toMatchObject({ mode: 'open', lanes: [{ mode: 'paused', queued: 1 }] });
  });

  it('TRN-11 rejects invalid arguments and unknown sessions', async () => {
    const { turns } = await startApplication();
    const { lanes } = turns;
    expect(lanes).toBeInstanceOf(LaneService);
    for (const timeoutMs of [-1, 1.5, '1', null, Infinity]) {
      await rejection(lanes.drain({ all: true }, { timeoutMs } as never), InvalidInputError);
    }
    expect(await lanes.counts()).toMatchObject({ mode: 'open' });
    for (const query of [{ limit: 0 }, { limit: 1001 }, { after: '' }, { after: 1 }, { before: 'a' }]) {
      await rejection(lanes.list(query as never), InvalidInputError);
    }
    await rejection(lanes.get('no id'), InvalidInputError);

    const unknown = { sessionId: 'no-such-session' };
    for (const method of ['pause', 'drain', 'resume'] as const) {
      await rejection(lanes[method](unknown) as Promise<unknown>, SessionNotFoundError);
    }
    expect(await lanes.clear(unknown)).toBe(0);
    expect(await lanes.get(unknown.sessionId)).toEqual({ ...unknown, mode: 'open', queued: 0 });
  });
});

/** Says what it heard; 'wait' takes until it is released. */
function hearingDesk() {
  const heard: string[] = [];
  const { pass, open: release } = gate();
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      answer: async ({ input: { text }, signal }: TurnContext) => {
        heard.push(text);
        if (text === 'wait') await pass(signal);
        return reply(text);
      },
    },
  });
  return { desk, heard, release };
}
