import {
  defineOrchestrator,
  END_TURN,
  IntentRouter,
  reply,
  type RouteDecision,
  type TurnContext,
  TurnCancelledError,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { gate, rejection, SAMPLED_STORES, startApplication } from '../support/running-application.js';

const used = (totalTokens: number) => ({ promptTokens: totalTokens - 1, completionTokens: 1, totalTokens });

/** A router as one that asks a model would be. */
class Explains extends IntentRouter {
  route(turn: TurnContext): RouteDecision {
    turn.usage.add(used(10));
    const intents = turn.iteration === 2 ? END_TURN : ['ask', 'tell'].slice(0, 2 - turn.iteration);
    return { intents, reasoning: `because of ${turn.iteration}`, raw: { confidence: 0.5 } };
  }
}

describe.each(SAMPLED_STORES)('the report of a turn over $name', ({ open }) => {
  it('BOT-03 BOT-09 has decisions with source, reasoning and raw answer, what intents said, and usage by whom', async () => {
    const desk = defineOrchestrator({
      name: 'desk',
      iterate: true,
      router: new Explains(),
      intents: {
        ask: (turn) => (turn.usage.add(used(100)), turn.usage.add(used(1)), reply(`asked ${turn.iteration}`)),
        tell: () => reply('told'),
      },
      evaluate: (turn) => void turn.usage.add(used(1000)),
    });
    const { handle, session, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const { id } = await handle(desk).execute('go', { sessionId: await session() });
    const decision = (iteration: number, intents: string[]) => ({
      source: 'router',
      intents,
      reasoning: `because of ${iteration}`,
      raw: { confidence: 0.5 },
    });
    const evaluation = { satisfied: false };
    const durationMs = expect.any(Number) as number;
    expect((await turns.get(id))?.report).toEqual({
      status: 'awaiting-input',
      attempt: 1,
      durationMs,
      endedBy: 'end',
      iterations: [
        {
          decision: decision(0, ['ask', 'tell']),
          intents: [
            {
              intent: 'ask',
              durationMs,
              text: 'asked 0',
              usage: { ...used(101), promptTokens: 99, completionTokens: 2 },
            },
            { intent: 'tell', durationMs, text: 'told' },
          ],
          evaluation,
          durationMs,
        },
        {
          decision: decision(1, ['ask']),
          intents: [
            {
              intent: 'ask',
              durationMs,
              text: 'asked 1',
              usage: { ...used(101), promptTokens: 99, completionTokens: 2 },
            },
          ],
          evaluation,
          durationMs,
        },
        { decision: decision(2, []), intents: [], durationMs },
      ],
      usage: {
        promptTokens: 27 + 198 + 1998,
        completionTokens: 3 + 4 + 2,
        totalTokens: 30 + 202 + 2000,
        router: { promptTokens: 27, completionTokens: 3, totalTokens: 30 },
        intents: { promptTokens: 198, completionTokens: 4, totalTokens: 202 },
        evaluate: { promptTokens: 1998, completionTokens: 2, totalTokens: 2000 },
      },
    });
  });

  it('BOT-09 is small for a turn with one dispatch, whose text is its reply', async () => {
    const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => 'x'.repeat(5000) } });
    const { handle, session, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const { id } = await handle(desk).execute('go', { sessionId: await session() });
    expect((await turns.get(id))?.report).toEqual({
      status: 'awaiting-input',
      attempt: 1,
      durationMs: expect.any(Number) as number,
      endedBy: 'dispatch',
      iterations: [
        {
          decision: { source: 'single', intents: ['answer'] },
          intents: [{ intent: 'answer', durationMs: expect.any(Number) as number }],
          durationMs: expect.any(Number) as number,
        },
      ],
    });
  });

  it('BOT-08 BOT-09 FIX-15 has the last attempt of a failed turn, and the tokens of all attempts', async () => {
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: (turn) => {
          turn.usage.add(used(7));
          throw new Error('out of stock');
        },
      },
    });
    const { handle, session, turns } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { attempts: 2, backoff: { delayMs: 1 } } },
    });
    const failed = await rejection(handle(desk).execute('go', { sessionId: await session() }), TurnFailedError);
    expect(await turns.get(failed.turnId)).toMatchObject({
      error: { message: 'out of stock' },
      report: {
        status: 'failed',
        attempt: 2,
        iterations: [{ decision: { source: 'single', intents: ['answer'] }, intents: [] }],
        usage: { totalTokens: 14, intents: { totalTokens: 14 } },
      },
    });
  });

  it('BOT-09 has the status cancelled for a cancelled turn', async () => {
    const began = gate();
    const desk = defineOrchestrator({
      name: 'desk',
      intents: { answer: (turn) => (began.open(), gate().pass(turn.signal)) },
    });
    const { handle, session, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const cancelled = rejection(handle(desk).execute('go', { sessionId }), TurnCancelledError);
    await began.pass();
    const [{ id }] = await turns.list({ sessionId });
    await turns.cancel(id);
    await cancelled;
    expect((await turns.get(id))?.report).toMatchObject({
      status: 'cancelled',
      attempt: 1,
      iterations: [{ intents: [] }],
    });
  });

  it('BOT-09 BOT-30 FIX-15 counts the tokens of an attempt, and once those of iterations that an earlier attempt completed', async () => {
    const desk = defineOrchestrator({
      name: 'desk',
      iterate: true,
      route: ({ iteration }) => (iteration === 2 ? END_TURN : 'answer'),
      intents: {
        answer: (turn) => {
          turn.usage.add(used(turn.iteration === 0 ? 100 : 1));
          if (turn.iteration === 1 && turn.attempt === 1) throw new Error('not yet');
        },
      },
    });
    const { handle, session, turns } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { backoff: { delayMs: 1 } } },
    });
    const { id } = await handle(desk).execute('go', { sessionId: await session() });
    expect((await turns.get(id))?.report).toMatchObject({ attempt: 2, usage: { totalTokens: 102 } });
  });
});

it('BOT-09 does not split a character when it truncates a reported text', async () => {
  const desk = defineOrchestrator({
    name: 'desk',
    route: () => ['a', 'b'],
    intents: { a: () => `${'x'.repeat(999)}😀`, b: () => 'b' },
  });
  const { handle, session, turns } = await startApplication({ orchestrators: [desk] });
  const { id } = await handle(desk).execute('go', { sessionId: await session() });
  expect(await turns.get(id)).toMatchObject({
    report: { iterations: [{ intents: [{ text: 'x'.repeat(999) }, { text: 'b' }] }] },
  });
});

it.each([
  ['a reasoning that is not a string', { intents: 'a', reasoning: 7 }, 'ORCHESTRATOR_RESULT'],
  ['a raw answer that is not JSON', { intents: 'a', raw: 1n }, 'STATE_NOT_SERIALIZABLE'],
  ['an unknown intent', { intents: 'c', reasoning: 'why' }, 'UNKNOWN_INTENT'],
  ['no intent at all', { reasoning: 'why' }, 'UNKNOWN_INTENT'],
])('BOT-03 a decision with %s fails the turn', async (_, decision, code) => {
  const desk = defineOrchestrator({ name: 'desk', route: () => decision as never, intents: { a: () => 'a' } });
  const { handle, session } = await startApplication({ orchestrators: [desk] });
  const error = await rejection(handle(desk).execute('go', { sessionId: await session() }), TurnFailedError);
  expect(error.failure?.code).toBe(code);
});
