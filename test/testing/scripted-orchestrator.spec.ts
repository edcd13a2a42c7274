import 'reflect-metadata';
import { readFile } from 'node:fs/promises';
import {
  defineOrchestrator,
  getOrchestratorToken,
  Intent,
  InvalidInputError,
  OrchestrationStateManager,
  Orchestrator,
  type OrchestratorHandle,
  turnOutcome,
  PermanentTurnError,
  reply,
  SessionsConfigurationError,
  SessionsModule,
  TokenBudgetExceededError,
  ToolNotAllowedError,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { type ScriptedAnswer, scriptedOrchestrator } from 'nestjs-agent-sessions/testing';
import { rejection } from '../support/running-application.js';
import { OrdersService, SupportDesk } from './support-desk.js';
import { create } from './testing-application.js';

describe('scriptedOrchestrator', () => {
  it('NST-26 returns one answer per turn, of each kind, and records the inputs', async () => {
    const desk = scriptedOrchestrator<{ orderId: string }>('support-desk', [
      'Hello.',
      reply('Order 7 is shipped.', { state: { orderId: '7' }, data: { carrier: 'post' } }),
      ({ input, state, turnIndex }) => reply(`${turnIndex}: ${input.text} ${state.orderId}`),
      async () => 'Later.',
      { orderId: '8' },
      undefined,
      turnOutcome({ status: 'completed' }),
    ]);
    const app = await create({ orchestrators: [desk] });
    const chat = await app.conversation({ userId: 'ann' });
    const texts = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];

    const results = [];
    for (const text of texts) results.push(await chat.say(text));

    expect(results).toMatchObject([
      { reply: 'Hello.', turnIndex: 0, status: 'awaiting-input' },
      { reply: 'Order 7 is shipped.', data: { carrier: 'post' } },
      { reply: '2: c 7' },
      { reply: 'Later.' },
      { reply: null },
      { reply: null, status: 'awaiting-input' },
      { reply: null, status: 'completed', turnIndex: 6 },
    ]);
    expect(desk.inputs).toEqual(texts.map((text) => ({ text })));
  });

  it('NST-26 throws an error in every attempt of its turn, and continues with the next', async () => {
    const down = new Error('The model is down.');
    const attempts: number[] = [];
    const desk = scriptedOrchestrator('desk', [
      down,
      ({ attempt }) => {
        attempts.push(attempt);
        if (attempt < 3) throw down;
        return 'At last.';
      },
      new PermanentTurnError('No.'),
      (await readFile('no such file').catch((error: unknown) => error)) as Error,
      'Well again.',
    ]);
    const app = await create({ orchestrators: [desk] });
    const chat = await app.conversation({ userId: 'ann' });

    const error = await rejection(chat.say({ text: 'one', metadata: { x: 1 } }), TurnFailedError);
    expect(error).toMatchObject({ failure: { name: 'Error', message: 'The model is down.' } });
    expect(error.cause).toMatchObject({
      name: 'Error',
      message: 'The model is down.',
      stack: 'Error: The model is down.',
    });
    expect(await chat.say('two')).toMatchObject({ reply: 'At last.', turnIndex: 0 });
    expect(await rejection(chat.say('three'), TurnFailedError)).toMatchObject({
      cause: { name: 'PermanentTurnError' },
    });
    expect(await rejection(chat.say('four'), TurnFailedError)).toMatchObject({ failure: { code: 'ENOENT' } });
    expect(await chat.say('five')).toMatchObject({ reply: 'Well again.' });

    expect(attempts).toEqual([1, 2, 3]);
    expect((await chat.turns()).map(({ failures }) => failures)).toEqual([3, 2, 1, 3, 0]);
    expect(desk.inputs.map(({ text }) => text)).toEqual(['one', 'two', 'three', 'four', 'five']);
    expect(desk.inputs[0]).toEqual({ text: 'one', metadata: { x: 1 } });
  });

  it('NST-26 fails without a retry when the script has no answer left', async () => {
    const desk = scriptedOrchestrator('desk', ['One.']);
    const app = await create({ orchestrators: [desk, scriptedOrchestrator('mute', [])] });
    const chat = await app.conversation({ userId: 'ann', orchestrator: desk });
    const mute = await app.conversation({ userId: 'ann', orchestrator: 'mute' });
    await chat.say('one');

    const error = await rejection(chat.say('two'), TurnFailedError);

    expect(error.failure).toMatchObject({ name: 'HandlerError', code: 'SCRIPT_OVER' });
    expect(error.cause).toMatchObject({
      message:
        'The script of orchestrator desk has 1 answer, and another turn came with "two". ' +
        'Add an answer to scriptedOrchestrator().',
    });
    expect(await chat.turns()).toMatchObject([{ failures: 0 }, { status: 'failed', failures: 1 }]);
    expect(await rejection(mute.say('hi'), TurnFailedError)).toMatchObject({
      cause: { message: expect.stringContaining('has 0 answers') as string },
    });
    expect(desk.inputs).toHaveLength(2);
  });

  it('NST-26 shares the script among all sessions, in the order in which their turns begin', async () => {
    const desk = scriptedOrchestrator('desk', ['One.', 'Two.', 'Three.']);
    const app = await create({ orchestrators: [desk] });
    const [ann, bob] = [await app.conversation({ userId: 'ann' }), await app.conversation({ userId: 'bob' })];

    expect(await ann.say('a')).toMatchObject({ reply: 'One.' });
    expect(await bob.say('b')).toMatchObject({ reply: 'Two.' });
    expect(await ann.say('c')).toMatchObject({ reply: 'Three.' });
  });

  it('NST-26 replaces a class, with its name, version and initial state', async () => {
    const initialState = () => ({ count: 41 });
    const counter = defineOrchestrator({ name: 'counter', version: '7', initialState, intents: { count: () => {} } });
    const scripts = [
      scriptedOrchestrator(SupportDesk, ['Scripted.']),
      scriptedOrchestrator<{ count: number }>(counter, [({ state }) => `${state.count + 1}`]),
    ];
    const app = await create({ orchestrators: scripts });
    const handle = (orchestrator: typeof SupportDesk | typeof counter): OrchestratorHandle =>
      app.get<OrchestratorHandle>(getOrchestratorToken(orchestrator));
    const { sessionId } = await app.conversation({ userId: 'ann', orchestrator: SupportDesk });

    expect(handle(SupportDesk)).toMatchObject({ name: 'support-desk', version: '3' });
    expect(await handle(SupportDesk).execute('hi', { sessionId })).toMatchObject({ reply: 'Scripted.' });
    expect(handle(counter)).toMatchObject({ name: 'counter', version: '7' });
    expect(await handle(counter).execute('hi', { sessionId })).toMatchObject({ reply: '42' });
  });

  it('NST-26 ORC-28 keeps the plan of the replaced orchestrator, a class or a definition', async () => {
    const plan = {
      steps: [{ name: 'refund', isDefault: true, sequence: ['search', 'pay'] }],
      onViolation: 'warn',
      tokenBudget: 10,
    } as const;
    @Orchestrator({ name: 'refunds', ...plan })
    class Refunds {
      @Intent()
      answer(): void {}
    }
    const trips = defineOrchestrator({ name: 'trips', ...plan, onViolation: 'reject', intents: { answer: () => {} } });
    const early: ScriptedAnswer = async ({ tools, usage }) => {
      usage.add({ totalTokens: 10 });
      return tools.use('pay', 'p', () => `paid in ${tools.activeStep?.name}`);
    };
    const app = await create({
      orchestrators: [
        scriptedOrchestrator(Refunds, [early, ({ usage }) => usage.assertWithinBudget()]),
        scriptedOrchestrator(trips, [early, ({ tools }) => tools.use('search', 's', () => 'found')]),
        scriptedOrchestrator('free', [early]),
      ],
    });
    const chat = (orchestrator: string) => app.conversation({ userId: 'ann', orchestrator });
    const [refunds, trip, free] = [await chat('refunds'), await chat('trips'), await chat('free')];

    expect(await refunds.say('pay')).toMatchObject({ reply: 'paid in refund' });
    await rejection(refunds.say('more'), TokenBudgetExceededError);
    await rejection(trip.say('pay'), ToolNotAllowedError);
    expect(await trip.say('search')).toMatchObject({ reply: 'found' });
    expect(await free.say('pay')).toMatchObject({ reply: 'paid in undefined' });
    const states = app.get(OrchestrationStateManager).of(trips);
    expect(await states.getState(trip.sessionId)).toMatchObject({ activeStep: 'refund', sequenceIndex: 1 });
  });

  it('NST-26 ORC-28 uses its own plan if it is a definition with another plan or none', async () => {
    const steps = [{ name: 'refund', isDefault: true, sequence: ['search', 'pay'] }];
    @Orchestrator({ name: 'refunds', steps })
    class Refunds {
      @Intent()
      answer(): void {}
    }
    const pay: ScriptedAnswer = ({ tools }) => tools.use('pay', 'p', () => 'paid');
    const feature = SessionsModule.forFeature([Refunds]);
    const planless = await create({ imports: [feature], orchestrators: [scriptedOrchestrator('refunds', [pay])] });
    const other = defineOrchestrator({
      name: 'refunds',
      steps: [{ name: 'other', isDefault: true }],
      intents: { answer: ({ tools }) => tools.activeStep?.name },
    });
    const replanned = await create({ imports: [feature], orchestrators: [other] });

    expect(await (await planless.conversation({ userId: 'ann' })).say('pay')).toMatchObject({ reply: 'paid' });
    expect(await (await replanned.conversation({ userId: 'ann' })).say('pay')).toMatchObject({ reply: 'other' });
  });

  it('NST-26 can be passed to SessionsModule.forFeature', async () => {
    const app = await create({ imports: [SessionsModule.forFeature([scriptedOrchestrator('desk', ['Hello.'])])] });

    expect(await (await app.conversation({ userId: 'ann' })).say('hi')).toMatchObject({ reply: 'Hello.' });
  });

  it('NST-26 copies the script array', async () => {
    const script: ScriptedAnswer[] = ['One.'];
    const app = await create({ orchestrators: [scriptedOrchestrator('desk', script)] });
    const chat = await app.conversation({ userId: 'ann' });
    script.splice(0, 1, 'Other.');

    expect(await chat.say('hi')).toMatchObject({ reply: 'One.' });
  });

  it('NST-26 rejects an invalid script and an invalid orchestrator', () => {
    expect(() => scriptedOrchestrator('desk', 'Hello.' as never)).toThrow(InvalidInputError);
    expect(() => scriptedOrchestrator('desk', 'Hello.' as never)).toThrow('script must be an array of answers');
    expect(() => scriptedOrchestrator('', [])).toThrow(SessionsConfigurationError);
    expect(() => scriptedOrchestrator(OrdersService, [])).toThrow('OrdersService is not an orchestrator.');
  });
});
