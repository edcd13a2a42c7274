import { setTimeout as delay } from 'node:timers/promises';
import {
  defineOrchestrator,
  type OrchestratorConfig,
  reply,
  SessionStateService,
  type TurnContext,
  TurnFailedError,
  TurnStoppedError,
  TurnTimeoutError,
} from 'nestjs-agent-sessions';
import { unknownIntent } from '../../lib/orchestrator/orchestrator.errors.js';
import { capturingLogger } from '../support/capturing-logger.js';
import { eventually } from '../support/eventually.js';
import { aborted, LIVE_STORES, rejection, startApplication } from '../support/running-application.js';

const NODE_ENV = process.env.NODE_ENV;

type Answer = (turn: TurnContext) => unknown;

describe.each(LIVE_STORES)('the log of a failed attempt, with $name', ({ open }) => {
  afterEach(() => {
    process.env.NODE_ENV = NODE_ENV;
  });

  const failing: readonly (readonly [string, Answer, RegExp])[] = [
    ['an intent', () => fail(), /in intent answer and is/],
    ['a step', (turn) => turn.step('load order', fail), /in intent answer, step load order and is/],
    [
      'a step in a step',
      (turn) => turn.step('outer', (info) => info.step('inner', fail)),
      /in intent answer, step inner and is/,
    ],
    ['a tool', (turn) => turn.tools.use('search', 'call-1', fail), /in intent answer, tool search and is/],
    [
      'a step whose error is the cause of another one',
      (turn) =>
        turn.step('load order', fail).catch((cause: unknown) => {
          throw new Error('No order.', { cause });
        }),
      /in intent answer, step load order and is/,
    ],
  ];

  it.each(failing)('DAY-17 names the place, for %s', async (_, answer, place) => {
    for (const mode of ['development', 'production']) {
      process.env.NODE_ENV = mode;
      const [retried, last] = await entriesOf(answer, { attempts: 2 });
      expect(retried).toMatch(/^warn Turn \S+ of desk failed in attempt 1 \(failures: 1 of 2\)/);
      expect(retried).toMatch(place);
      expect(retried).toMatch(/OrderError \[NO_ORDER\]/);
      expect(last).toMatch(/^error Turn \S+ of desk failed in attempt 2 \(failures: 2 of 2\) in intent answer/);
    }
  });

  it('DAY-17 names the route', async () => {
    const [entry] = await entriesOf(() => 'hi', { attempts: 1, route: fail });
    expect(entry).toMatch(/^error Turn \S+ of desk failed in attempt 1 \(failures: 1 of 1\) in the route\./);
  });

  it('DAY-17 names what runs when an attempt exceeds its time limit', async () => {
    const never = new Promise<void>(() => undefined);
    const [entry] = await entriesOf((turn) => turn.step('load order', () => never), { attempts: 1, timeoutMs: 50 });
    expect(entry).toMatch(
      /^error Turn \S+ of desk failed in attempt 1 \(failures: 1 of 1\) in intent answer, step load order\./,
    );
  });

  const unstorable: readonly (readonly [string, Answer, string])[] = [
    [
      'a step',
      (turn) => turn.step('load order', (): unknown => ({ lines: [{ at: new Date(0) }] })),
      'The result of step "load order".lines[0].at is an instance of Date',
    ],
    [
      'a step after a pause',
      async (turn) => {
        await delay(1);
        return turn.step('load order', async () => ({ total: await Promise.resolve(NaN) }));
      },
      'The result of step "load order".total is NaN',
    ],
    [
      'a tool',
      (turn) => turn.tools.use('search', 'call-1', (): unknown => ({ found: new Map() })),
      'The result of tool "search".found is an instance of Map',
    ],
    [
      'an outcome',
      async () => {
        await delay(1);
        return reply('Done.', { state: { order: { at: new Date(0) } } });
      },
      'state.order.at is an instance of Date',
    ],
    ['an event', (turn) => turn.emit({ type: 'note', data: nested(20, 1n) }), '.a is a bigint'],
  ];

  it.each(unstorable)('DAY-17 names the path and the line of the caller, for %s', async (_, answer, sentence) => {
    for (const mode of ['development', 'production']) {
      process.env.NODE_ENV = mode;
      const [entry] = await entriesOf(answer);
      expect(entry).toMatch(/^error .*StateSerializationError \[STATE_NOT_SERIALIZABLE\]/s);
      expect(entry).toContain(sentence);
      expect(entry).toMatch(/\n {4}at .*named-failures\.spec\.ts:\d+/);
    }
  });

  it('DAY-17 names the value and the nearest intent of a wrong decision, and does not retry it', async () => {
    const desk = defineOrchestrator({
      name: 'desk',
      route: (): string => 'refnd',
      intents: { status: () => 'status', refund: () => 'refund' },
    });
    const { handle, session, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const error = await rejection(handle(desk).execute('hi', { sessionId: await session() }), TurnFailedError);
    expect(await turns.get(error.turnId)).toMatchObject({
      failures: 1,
      error: {
        code: 'UNKNOWN_INTENT',
        message: 'Orchestrator desk has no intent "refnd". Did you mean "refund"? It has: status, refund.',
      },
    });
  });

  it('DAY-17 rejects uses of a turn after its handler has returned, before they have an effect', async () => {
    const errors: unknown[] = [];
    const effects: string[] = [];
    const note = (error: unknown): unknown => errors.push(error);
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: (turn) => {
          void delay(50).then(async () => {
            await turn.step('late', () => effects.push('step')).catch(note);
            await turn.tools.use('late', 'call-1', () => effects.push('tool')).catch(note);
            await turn.waitFor('late').catch(note);
          });
          // A step that still runs when the handler returns.
          void turn.step('forgotten', () => delay(50)).catch(note);
          return 'done';
        },
      },
    });
    const { handle, session, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const { id } = await handle(desk).execute('hi', { sessionId: await session() });
    await eventually(() => errors.length === 4);
    for (const error of errors) {
      expect(error).toBeInstanceOf(TurnStoppedError);
      expect(error).toMatchObject({
        why: 'ended',
        message:
          'The attempt is over: its handler has returned. Await every call of the turn before the handler returns.',
      });
    }
    expect(effects).toEqual([]);
    expect(await turns.get(id)).toMatchObject({ status: 'awaiting-input', failures: 0 });
  });

  const ENDS = [
    {
      end: 'has returned',
      error: TurnStoppedError,
      message:
        'The attempt is over: its handler has returned. Await every call of the turn before the handler returns.',
    },
    {
      end: 'was cancelled',
      error: TurnStoppedError,
      message: 'The attempt is over: the turn was cancelled. The handler can return: its result is not used.',
    },
    { end: 'has exceeded its time limit', error: TurnTimeoutError, message: 'exceeded turns.timeoutMs (1000 ms)' },
  ] as const;

  it.each(ENDS)('DAY-17 rejects later uses of a turn that $end', async ({ end, error, message }) => {
    const kept: TurnContext[] = [];
    const effects: string[] = [];
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: async (turn) => {
          kept.push(turn);
          if (end !== 'has returned') await aborted(turn.signal);
        },
      },
    });
    const { lines, logger } = capturingLogger();
    const { app, handle, session, turns } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      logger,
      turns: {
        retry: { attempts: 1 },
        ...(end === 'has exceeded its time limit' ? { timeoutMs: 1000 } : {}),
      },
    });
    const sessionId = await session();
    const { id } = await handle(desk).submit('hi', { sessionId });
    await eventually(() => kept.length === 1);
    if (end === 'was cancelled') await turns.cancel(id);
    await turns.result(id).catch(() => undefined);

    const [turn] = kept;
    const errors: unknown[] = [];
    const { tools, task, flow } = turn.modules;
    const uses: Readonly<Record<string, Promise<unknown>>> = {
      'turn.step("late")': turn.step('late', () => effects.push('step')),
      'turn.tools.use("late")': turn.tools.use('late', 'call-1', () => effects.push('tool')),
      'turn.waitFor("late")': turn.waitFor('late'),
      'turn.modules.task.create': task.create({ id: 'late' }),
      'turn.modules.task.transition': task.transition('late', 'working'),
      'turn.modules.task.setFlowState': task.setFlowState('late', 1),
    };
    // Code that awaits a late call stays there (FIX-87).
    for (const use of Object.values(uses)) void use.catch((rejected: unknown) => errors.push(rejected));
    tools.set('late', 'key', 1);
    tools.patch('late', 'key', { a: 1 });
    tools.increment('late', 'key');
    tools.delete('late', 'key');
    flow.save('late', 1);
    await eventually(() => errors.length === 6);
    for (const rejected of errors) {
      expect(rejected).toBeInstanceOf(error);
      expect((rejected as Error).message).toContain(message);
    }
    const writes = ['tools.set', 'tools.patch', 'tools.increment', 'tools.delete', 'flow.save'];
    for (const call of [...Object.keys(uses), ...writes.map((write) => `turn.modules.${write}`)]) {
      await eventually(() => lines.some((line) => line.startsWith(`warn ${call} of turn `)));
    }
    // Events after the end are dropped: a stream of a model may outlive the turn.
    await turn.emit({ type: 'delta', data: 'late' });
    await turn.flush();
    expect((await turn.emitted()).map(({ data }) => data)).not.toContain('late');
    expect(effects).toEqual([]);
    const state = app.get(SessionStateService, { strict: false });
    expect(await state.tools.get(sessionId, 'late', 'key')).toBeNull();
    expect(await state.task.get(sessionId, 'late')).toBeNull();
    expect(await state.flow.load(sessionId, 'late')).toBeNull();
  });

  /** The warnings and errors of a turn that fails. */
  async function entriesOf(
    answer: Answer,
    {
      attempts = 3,
      route,
      timeoutMs,
    }: { attempts?: number; route?: OrchestratorConfig['route']; timeoutMs?: number } = {},
  ): Promise<string[]> {
    const { lines, logger } = capturingLogger();
    const intents = { answer: answer as OrchestratorConfig['intents'][string] };
    const desk = defineOrchestrator({ name: 'desk', intents, ...(route ? { route } : {}) });
    const retry = { attempts, backoff: { delayMs: 0 } };
    const { handle, session, close } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      logger,
      turns: { retry, ...(timeoutMs === undefined ? {} : { timeoutMs }) },
    });
    await rejection(handle(desk).execute('hi', { sessionId: await session() }), TurnFailedError);
    await close();
    return lines.filter((line) => /^(warn|error) .*Turn/.test(line));
  }
});

it('DAY-17 hides the value of a wrong decision from logs in production', () => {
  expect(unknownIntent('desk', 'refnd', ['refund']).forLog).toBe(
    'the route chose an intent that orchestrator desk does not have. Did you mean "refund"? It has: refund.',
  );
});

class OrderError extends Error {
  readonly code = 'NO_ORDER';
}

function fail(): never {
  throw new OrderError('no such order');
}

function nested(levels: number, value: unknown): unknown {
  return levels === 0 ? value : { a: nested(levels - 1, value) };
}
