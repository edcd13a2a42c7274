import {
  InvalidInputError,
  memoryAdapter,
  OrchestrationService,
  type OrchestrationStep,
  type TokenCountsInput,
  TokenBudgetExceededError,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { LIVE_STORES, rejection } from '../support/running-application.js';
import { startDesk, useAll } from './turn-desk.js';

const STEPS: readonly OrchestrationStep[] = [
  { name: 'chat', isDefault: true },
  { name: 'thrifty', conditions: [{ type: 'tokens_over', value: 50 }] },
];

describe.each(LIVE_STORES)('tokens of turns over $name', ({ open }) => {
  it('ORC-11 FIX-15 are counted for each attempt, also of a turn that fails', async () => {
    const { say, session, state } = await startDesk(open(), { steps: STEPS });
    const sessionId = await session();
    const seen: number[] = [];
    await say(sessionId, (turn) => {
      turn.usage.add({ promptTokens: 10, completionTokens: 5 });
      turn.usage.add({ promptTokens: NaN, totalTokens: 20 });
      seen.push(turn.tools.state.cumulativeTokenUsage.totalTokens);
      if (turn.attempt < 3) throw new Error('again');
    });
    await rejection(
      say(sessionId, (turn) => {
        turn.usage.add({ totalTokens: 1000 });
        throw new Error('never');
      }),
      TurnFailedError,
    );
    expect(seen).toEqual([35, 70, 105]);
    expect((await state(sessionId))?.cumulativeTokenUsage).toEqual({
      promptTokens: 30,
      completionTokens: 15,
      totalTokens: 3105,
    });
  });

  it('ORC-11 TokenBudgetExceededError comes before the next call of a model, in this turn and in later ones', async () => {
    const { app, say, session, state, events } = await startDesk(open(), { steps: STEPS, tokenBudget: 100 });
    const [sessionId, other] = [await session(), await session()];
    const calls: string[] = [];
    const problems: TokenBudgetExceededError[] = [];
    await say(sessionId, async ({ usage }) => {
      for (const call of ['a', 'b', 'c']) {
        try {
          usage.assertWithinBudget();
        } catch (error) {
          problems.push(error as TokenBudgetExceededError);
          return 'Short of tokens.';
        }
        calls.push(call);
        usage.add({ totalTokens: 50 });
      }
      return 'all';
    });
    expect(calls).toEqual(['a', 'b']);
    expect(problems).toMatchObject([{ code: 'TOKEN_BUDGET_EXCEEDED', sessionId, usedTokens: 100, tokenBudget: 100 }]);

    const later = await rejection(
      say(sessionId, ({ usage }) => usage.assertWithinBudget()),
      TokenBudgetExceededError,
    );
    expect(await app.turns.get(later.turnId!)).toMatchObject({ failures: 1 });
    await say(other, ({ usage }) => usage.assertWithinBudget());
    const service = app.app.get(OrchestrationService, { strict: false }).of('desk');
    await rejection(service.assertTokenBudget(sessionId), TokenBudgetExceededError);
    await service.assertTokenBudget(other);

    expect(await state(sessionId)).toMatchObject({ cumulativeTokenUsage: { totalTokens: 100 } });
    const told = { type: 'token-budget-exceeded', agent: 'desk', sessionId, usedTokens: 100, tokenBudget: 100 };
    expect(events.filter(({ type }) => type === 'token-budget-exceeded')).toEqual([told, told, told]);
  });

  it('ORC-11 ORC-27 a budget needs no steps; with steps tokens_over leads to one at the next tool', async () => {
    const budgetOnly = await startDesk(open(), { tokenBudget: 10 });
    const first = await budgetOnly.session();
    await budgetOnly.say(first, ({ usage, tools }) => {
      usage.add({ totalTokens: 10 });
      expect(tools.allowed(['b', 'a'])).toEqual(['b', 'a']);
    });
    await rejection(
      budgetOnly.say(first, ({ usage }) => usage.assertWithinBudget()),
      TokenBudgetExceededError,
    );

    const { say, session, state } = await startDesk(open(), { steps: STEPS });
    const sessionId = await session();
    await say(sessionId, async (turn) => {
      turn.usage.add({ totalTokens: 51 });
      await useAll(turn, 'look');
      expect(turn.tools.activeStep?.name).toBe('thrifty');
    });
    expect(await state(sessionId)).toMatchObject({ activeStep: 'thrifty' });
  });
});

it.each([
  [null, 'usage'],
  [7, 'usage'],
  [{ promptTokens: -1 }, 'usage.promptTokens'],
])('ORC-11 refuses the usage %p', async (usage, path) => {
  const { say, session, document } = await startDesk(memoryAdapter(), { steps: STEPS });
  const sessionId = await session();
  const problems: unknown[] = [];
  await say(sessionId, (turn) => {
    try {
      turn.usage.add(usage as TokenCountsInput);
    } catch (error) {
      problems.push(error);
    }
  });
  expect(problems).toEqual([expect.any(InvalidInputError)]);
  expect(problems).toMatchObject([{ path }]);
  expect(await document(sessionId)).toBeNull();
});
