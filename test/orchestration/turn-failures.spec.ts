import {
  type OrchestrationStep,
  type SessionsError,
  TokenBudgetExceededError,
  ToolNotAllowedError,
} from 'nestjs-agent-sessions';
import { LASTING_STORES, rejection } from '../support/running-application.js';
import { startDesk } from './turn-desk.js';

const STEPS: readonly OrchestrationStep[] = [
  { name: 'browse', isDefault: true, availableTools: { allowed: ['search', 'pay*'], denied: ['pay'] } },
];

describe.each(LASTING_STORES)('a turn that fails because of its plan over $name', ({ create }) => {
  it('FIX-26 rejects its callers with the typed error of the handler, also later and in another process', async () => {
    const open = create();
    const first = await startDesk(open(), { steps: STEPS, tokenBudget: 10 });
    const sessionId = await first.session();
    const refused = await rejection(
      first.say(sessionId, ({ tools }) => tools.use('pay', 'p', () => 'paid')),
      ToolNotAllowedError,
    );
    await first.say(sessionId, ({ usage }) => usage.add({ totalTokens: 12 }));
    const exhausted = await rejection(
      first.say(sessionId, ({ usage }) => usage.assertWithinBudget()),
      TokenBudgetExceededError,
    );
    const about = { sessionId, turnId: expect.any(String) as string };
    const isSame = (errors: readonly SessionsError[]): void =>
      expect(errors).toMatchObject([
        {
          ...about,
          code: 'TOOL_NOT_ALLOWED',
          tool: 'pay',
          step: 'browse',
          allowed: ['search', 'pay*'],
          denied: ['pay'],
        },
        { ...about, code: 'TOKEN_BUDGET_EXCEEDED', usedTokens: 12, tokenBudget: 10 },
      ]);
    isSame([refused, exhausted]);
    const turnIds = [refused.turnId!, exhausted.turnId!] as const;
    await first.app.close();

    const second = await startDesk(open(), { steps: STEPS, tokenBudget: 10 });
    const later = [
      await rejection(second.app.turns.result(turnIds[0]), ToolNotAllowedError),
      await rejection(second.app.turns.result(turnIds[1]), TokenBudgetExceededError),
    ];
    isSame(later);
    expect(later.map(({ message }) => message)).toEqual([refused.message, exhausted.message]);
  });
});
