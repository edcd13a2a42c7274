import {
  defineOrchestrator,
  type OrchestratorEvent,
  OrchestratorEvents,
  PermanentTurnError,
  reply,
  TurnCancelledError,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { gate, LIVE_STORES, rejection, startApplication } from '../support/running-application.js';

const WHOLE_TURN: OrchestratorEvent['type'][] = [
  'turn-starting',
  'session-loaded',
  'drift-checked',
  'history-windowed',
  'routed',
  'history-windowed',
  'delta',
  'checkpoint-persisted',
  'turn-settled',
];

describe.each(LIVE_STORES)('events of turns over $name', ({ open }) => {
  it('BOT-10 tell each point of a turn in order, to the definition, the handle, the caller and the injectable', async () => {
    const heard = {
      definition: [] as string[],
      handle: [] as string[],
      call: [] as OrchestratorEvent[],
      all: [] as string[],
    };
    const listen = (type: OrchestratorEvent['type']) => [type, () => heard.definition.push(type)] as const;
    const dispatched: number[] = [];
    const desk = defineOrchestrator({
      name: 'desk',
      historyWindow: { router: 1, agents: 10 },
      on: Object.fromEntries([...new Set(WHOLE_TURN)].map(listen)),
      route: () => 'answer',
      intents: {
        answer: async (turn) => {
          dispatched.push(heard.call.filter(({ type }) => type === 'routed').length);
          expect(turn.history).toHaveLength(2);
          await turn.emit({ type: 'token', data: 'he' });
          return reply('hello');
        },
      },
    });
    const other = defineOrchestrator({ name: 'other', intents: { answer: () => 'other' } });
    const { handle, session, app } = await startApplication({ adapter: open(), orchestrators: [desk, other] });
    const sessionId = await session();
    await handle(other).execute('first', { sessionId });
    app.get(OrchestratorEvents, { strict: false }).stream.subscribe(({ type }) => heard.all.push(type));
    for (const type of new Set(WHOLE_TURN)) handle(desk).on(type, (event) => heard.handle.push(event.type));
    const { id } = await handle(desk).execute('hi', { sessionId, onEvent: (event) => heard.call.push(event) });
    await handle(other).execute('last', { sessionId });

    await eventually(() => heard.call.length === WHOLE_TURN.length);
    expect(heard.definition).toEqual(WHOLE_TURN);
    expect(heard.handle).toEqual(WHOLE_TURN);
    expect(heard.all.slice(0, WHOLE_TURN.length)).toEqual(WHOLE_TURN);
    expect(dispatched).toEqual([1]);
    const about = { orchestrator: 'desk', sessionId, turnId: id };
    expect(heard.call).toEqual([
      { ...about, type: 'turn-starting', attempt: 1 },
      { ...about, type: 'session-loaded', turnIndex: 0, session: expect.objectContaining({ id: sessionId }) as object },
      { ...about, type: 'drift-checked', drifted: false, migrated: [] },
      { ...about, type: 'history-windowed', for: 'router', available: 2, kept: 1 },
      { ...about, type: 'routed', iteration: 0, source: 'route', intents: ['answer'] },
      { ...about, type: 'history-windowed', for: 'agents', available: 2, kept: 2 },
      { ...about, type: 'delta', event: { type: 'token', data: 'he' } },
      { ...about, type: 'checkpoint-persisted', turnIndex: 0 },
      { ...about, type: 'turn-settled', status: 'awaiting-input', turnIndex: 0 },
    ]);
  });

  it('BOT-10 end with one terminal event, whatever the end, however many attempts', async () => {
    const { pass } = gate();
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: async (turn) => {
          const { text } = turn.input;
          if (text === 'fails') throw new Error('not today');
          if (text === 'fails for good') throw Object.assign(new PermanentTurnError('never'), { code: 'NEVER' });
          if (text === 'cancelled') await pass(turn.signal);
          return reply('bye', { status: 'completed' });
        },
      },
    });
    const { handle, session, turns } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { backoff: { delayMs: 1 } } },
    });
    const ends: unknown[] = [];
    const starts: string[] = [];
    handle(desk).on('turn-settled', ({ status, code }) => ends.push([status, code]));
    const onEvent = (event: OrchestratorEvent): void => {
      if (event.type === 'turn-starting') starts.push(`${event.attempt}`);
      if (event.type === 'routed' && event.sessionId === stopped) void turns.cancel(event.turnId);
    };
    const sessionId = await session();
    const stopped = await session();
    await handle(desk).execute('ends', { sessionId, onEvent });
    await rejection(handle(desk).execute('fails', { sessionId, onEvent }), TurnFailedError);
    await rejection(handle(desk).execute('fails for good', { sessionId, onEvent }), TurnFailedError);
    await rejection(handle(desk).execute('cancelled', { sessionId: stopped, onEvent }), TurnCancelledError);
    await eventually(() => ends.length >= 4);
    expect(ends).toEqual([
      ['completed', undefined],
      ['failed', undefined],
      ['failed', 'NEVER'],
      ['cancelled', undefined],
    ]);
    expect(starts).toEqual(['1', '1', '2', '3', '1', '1']);
  });
});

it('BOT-10 a listener that throws or rejects harms nothing', async () => {
  const errors: string[] = [];
  const logger = { error: (text: string) => void errors.push(text), log: () => {}, warn: () => {} };
  const fail = (): never => {
    throw new Error('listener');
  };
  const desk = defineOrchestrator({
    name: 'desk',
    on: { 'turn-starting': fail, routed: () => Promise.reject(new Error('later')) },
    intents: { answer: () => 'fine' },
  });
  const { handle, session } = await startApplication({ orchestrators: [desk], logger });
  handle(desk).on('drift-checked', fail);
  const onEvent = (event: OrchestratorEvent): void => (event.type === 'turn-settled' ? fail() : undefined);
  expect(await handle(desk).execute('hi', { sessionId: await session(), onEvent })).toMatchObject({ reply: 'fine' });
  await eventually(() => errors.length === 4);
  expect(errors.sort()).toEqual(
    ['drift-checked', 'routed', 'turn-settled', 'turn-starting'].map((type) => `A listener of ${type} events threw.`),
  );
});

it('BOT-10 aborts work that a failed attempt left running, and drops its events', async () => {
  const { pass, open } = gate();
  const reasons: unknown[] = [];
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      answer: async (turn) => {
        if (turn.attempt > 1) {
          open();
          await eventually(() => reasons.length === 1);
          return 'second';
        }
        void pass().then(async () => {
          await turn.emit({ type: 'from the first' });
          reasons.push((turn.signal.reason as { why: string }).why);
        });
        throw new Error('not yet');
      },
    },
  });
  const { handle, session } = await startApplication({
    orchestrators: [desk],
    turns: { retry: { backoff: { delayMs: 1 } } },
  });
  const types: string[] = [];
  const onEvent = ({ type }: OrchestratorEvent): void => void types.push(type);
  expect(await handle(desk).execute('hi', { sessionId: await session(), onEvent })).toMatchObject({ reply: 'second' });
  expect(reasons).toEqual(['failed']);
  expect(types).not.toContain('delta');
});

it('BOT-10 drops events of work that a handler left running after the end', async () => {
  const { pass, open } = gate();
  const late = gate();
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      answer: (turn) => {
        void pass()
          .then(() => turn.emit({ type: 'late' }))
          .then(late.open);
        return 'done';
      },
    },
  });
  const { handle, session } = await startApplication({ orchestrators: [desk] });
  const types: string[] = [];
  const onEvent = ({ type }: OrchestratorEvent): void => void types.push(type);
  handle(desk).on('delta', onEvent);
  await handle(desk).execute('hi', { sessionId: await session(), onEvent });
  open();
  await late.pass();
  expect(types.at(-1)).toBe('turn-settled');
  expect(types).not.toContain('delta');
});
