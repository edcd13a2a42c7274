import {
  defineOrchestrator,
  OrchestrationStateManager,
  type OrchestrationStep,
  reply,
  ToolNotAllowedError,
  type TurnContext,
  type TurnOutcome,
} from 'nestjs-agent-sessions';
import { type Application, LIVE_STORES, rejection, startApplication } from '../support/running-application.js';

const STEPS: readonly OrchestrationStep[] = [
  { name: 'ask', isDefault: true, sequence: ['look_up', 'expert'], onComplete: 'done' },
  { name: 'done', availableTools: { denied: ['expert'] } },
];

describe.each(LIVE_STORES)('an orchestrator as a tool of a turn with a plan over $name', ({ open }) => {
  it('FIX-24 is refused before its turn is accepted, when the plan of the caller does not allow it', async () => {
    const { app, say, ask } = await start();
    const sessionId = await app.session();
    await say(sessionId, async (turn) => {
      const refused = await rejection(ask(turn, 'c1'), ToolNotAllowedError);
      return reply(refused.message);
    });
    expect(await app.sessions.get(`${sessionId}/expert`)).toBeNull();
    expect(await state(app, sessionId)).toBeNull();
  });

  it('FIX-24 moves the sequence, appears in the tool history, and counts once over attempts', async () => {
    const { app, say, ask, asked } = await start();
    const sessionId = await app.session();
    await say(sessionId, async (turn) => {
      await turn.tools.use('look_up', 'l', () => null);
      const { reply: text } = await ask(turn, 'c1');
      if (turn.attempt === 1) throw new Error('again');
      await rejection(ask(turn, 'c2'), ToolNotAllowedError);
      return reply(text ?? '');
    });
    expect(asked).toEqual(['c1']);
    expect(await state(app, sessionId)).toMatchObject({
      activeStep: 'done',
      toolHistory: [
        { tool: 'look_up', outcome: 'succeeded' },
        { tool: 'expert', step: 'ask', callId: 'c1', outcome: 'succeeded' },
      ],
    });
  });

  it('FIX-24 records a call whose turn fails as failed, and moves nothing', async () => {
    const { app, say, ask } = await start();
    const sessionId = await app.session();
    await say(sessionId, async (turn) => {
      await turn.tools.use('look_up', 'l', () => null);
      await rejection(ask(turn, 'fail'), Error);
      return reply((await ask(turn, 'c2')).reply ?? '');
    });
    expect((await state(app, sessionId))?.toolHistory.map(({ callId, outcome }) => [callId, outcome])).toEqual([
      ['l', 'succeeded'],
      ['fail', 'failed'],
      ['c2', 'succeeded'],
    ]);
  });

  async function start() {
    const asked: string[] = [];
    const expert = defineOrchestrator({
      name: 'expert',
      intents: {
        answer: ({ input }) => {
          asked.push(input.text);
          if (input.text === 'fail') throw new Error('no');
          return reply('It is so.');
        },
      },
    });
    type Work = (turn: TurnContext) => Promise<TurnOutcome>;
    const desk = defineOrchestrator({
      name: 'desk',
      steps: STEPS,
      intents: { ask: (turn) => (turn.context.work as Work)(turn) },
    });
    const app = await startApplication({
      adapter: open(),
      orchestrators: [desk, expert],
      turns: { retry: { attempts: 3, backoff: { type: 'fixed', delayMs: 1 } } },
    });
    const say = (sessionId: string, work: Work) => app.handle(desk).execute('hi', { sessionId, context: { work } });
    const ask = (turn: TurnContext, toolCallId: string) =>
      app.handle(expert).asTool(turn).execute({ input: toolCallId }, { toolCallId });
    return { app, say, ask, asked };
  }
});

function state(app: Application, sessionId: string) {
  return app.app.get(OrchestrationStateManager, { strict: false }).of('desk').getState(sessionId);
}
