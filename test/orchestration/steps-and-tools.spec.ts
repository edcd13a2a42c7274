import {
  type OrchestrationCondition,
  type OrchestrationStep,
  TokenBudgetExceededError,
  ToolNotAllowedError,
} from 'nestjs-agent-sessions';
import { mintId } from '../../lib/common/ids.js';
import { describeStores, noteWarnings, orchestrate, type Orchestration, planOf } from '../support/orchestration.js';
import { rejection } from '../support/running-application.js';
import { inProduction } from '../support/production.js';

inProduction();

const TOOLS = ['web_search', 'db_search', 'search', 'searcher', 'book', 'db_drop'];

describeStores('steps and tools', (store) => {
  let warnings: string[];

  beforeEach(() => {
    warnings = noteWarnings();
  });

  const of = (steps: readonly OrchestrationStep[], more: object = {}, predicates = {}): Orchestration =>
    orchestrate(store(), { plans: [planOf(steps, more)] }, predicates);

  /** Runs `work` on a plan whose step `next` has the conditions. @returns the active step */
  async function stepAfter(
    conditions: readonly OrchestrationCondition[],
    work: (of: Orchestration, sessionId: string) => Promise<unknown>,
    sequence?: OrchestrationStep['sequence'],
  ): Promise<string | undefined> {
    const sessionId = mintId();
    const next = { name: 'next', conditions, ...(sequence && { sequence }) };
    const desk = of([{ name: 'ask', isDefault: true }, next]);
    await work(desk, sessionId);
    return (await desk.service.getActiveStep(sessionId))?.name;
  }

  const using =
    (...tools: string[]) =>
    async ({ service }: Orchestration, sessionId: string): Promise<void> => {
      for (const tool of tools) {
        await service.processToolUsage(sessionId, tool.replace('!', ''), {
          outcome: tool.endsWith('!') ? 'failed' : 'succeeded',
        });
      }
    };

  describe('ORC-24 allowed and denied tools', () => {
    it.each<[string, OrchestrationStep['availableTools'], string[]]>([
      ['neither', undefined, TOOLS],
      ['an empty object', {}, TOOLS],
      ['allowed', { allowed: ['book', 'search'] }, ['search', 'book']],
      ['denied', { denied: ['book', 'db_drop'] }, ['web_search', 'db_search', 'search', 'searcher']],
      ['both', { allowed: ['*search*', 'book'], denied: ['db_*'] }, ['web_search', 'search', 'searcher', 'book']],
      ['*x*', { allowed: ['*search*'] }, ['web_search', 'db_search', 'search', 'searcher']],
      ['x*', { allowed: ['search*'] }, ['search', 'searcher']],
      ['*x', { allowed: ['*search'] }, ['web_search', 'db_search', 'search']],
      ['*', { allowed: ['*'], denied: ['*_*'] }, ['search', 'searcher', 'book']],
      ['a name that matches no tool', { allowed: ['sear'] }, []],
      ['a dot, which is not a wildcard', { allowed: ['.*', 'b..k'] }, []],
      ['everything denied', { denied: ['*'] }, []],
    ])('ORC-24 %s', async (_, availableTools, expected) => {
      const { service } = of([{ name: 'ask', isDefault: true, ...(availableTools && { availableTools }) }]);
      expect(await service.getAvailableTools(mintId(), TOOLS)).toEqual(expected);
    });

    it('ORC-24 before the sequence, and still after it', async () => {
      const sessionId = mintId();
      const { service } = of([
        {
          name: 'ask',
          isDefault: true,
          sequence: ['search', { anyOf: ['book', 'pay'] }],
          availableTools: { denied: ['db_*', 'book'] },
        },
      ]);
      expect(await service.getAvailableTools(sessionId, TOOLS)).toEqual(['search']);
      await service.processToolUsage(sessionId, 'search');
      expect(await service.getAvailableTools(sessionId, [...TOOLS, 'book'])).toEqual([]);
      await service.processToolUsage(sessionId, 'pay');
      expect(await service.getAvailableTools(sessionId, TOOLS)).toEqual(['web_search', 'search', 'searcher']);
    });

    it('ORC-24 keeps order and repetition, and the caller’s list', async () => {
      const { service } = of([{ name: 'ask', isDefault: true, availableTools: { denied: ['b'] } }]);
      const tools = ['c', 'b', 'a', 'c'];
      expect(await service.getAvailableTools(mintId(), tools)).toEqual(['c', 'a', 'c']);
      expect(tools).toEqual(['c', 'b', 'a', 'c']);
    });
  });

  describe('ORC-25 the active step', () => {
    const first: OrchestrationStep = { name: 'first', conditions: [{ type: 'tool_used', value: 'a' }] };
    const second: OrchestrationStep = { name: 'second', conditions: [{ type: 'last_tool', value: 'b' }] };
    const both: OrchestrationStep = {
      name: 'both',
      conditions: [
        { type: 'last_tool', value: 'c' },
        { type: 'tool_used', value: 'b' },
      ],
    };
    const start: OrchestrationStep = {
      name: 'start',
      isDefault: true,
      conditions: [{ type: 'last_tool', value: 'z' }],
    };

    it('ORC-25 is the default one until another one’s conditions all hold, and stays', async () => {
      const sessionId = mintId();
      const { service } = of([both, second, start]);
      const active = async (): Promise<string | undefined> => (await service.getActiveStep(sessionId))?.name;
      expect(await active()).toBe('start');
      await using('c')({ service } as Orchestration, sessionId);
      expect(await active()).toBe('start');
      await using('b')({ service } as Orchestration, sessionId);
      expect(await active()).toBe('second');
      await using('z', 'x')({ service } as Orchestration, sessionId);
      expect(await active()).toBe('second');
      await using('c')({ service } as Orchestration, sessionId);
      expect(await active()).toBe('both');
    });

    it('ORC-25 is the first in the plan’s order', async () => {
      const sessionId = mintId();
      const desk = of([first, second, start]);
      await using('a', 'b')(desk, sessionId);
      expect((await desk.service.getActiveStep(sessionId))?.name).toBe('first');
      const other = of([second, first, start]);
      const otherId = mintId();
      await using('a', 'b')(other, otherId);
      expect((await other.service.getActiveStep(otherId))?.name).toBe('second');
    });

    it('ORC-25 is the default one, from its start, if the plan does not know the stored one', async () => {
      const sessionId = mintId();
      const old = of([{ name: 'gone', isDefault: true, sequence: ['a', 'b', 'c'] }]);
      await using('a', 'b')(old, sessionId);
      const desk = of([first, { ...start, sequence: ['x', 'y'] }]);
      expect((await desk.service.getActiveStep(sessionId))?.name).toBe('start');
      expect(await desk.service.getAvailableTools(sessionId, ['x', 'y'])).toEqual(['x']);
      await using('x')(desk, sessionId);

      expect(await desk.states.getState(sessionId)).toMatchObject({
        activeStep: 'first',
        progress: { gone: 2, start: 1 },
      });
    });

    it('ORC-25 ORC-30 does not exist without a default one, and uses are still recorded', async () => {
      const sessionId = mintId();
      const { service, states } = of([second]);
      expect(await service.getActiveStep(sessionId)).toBeUndefined();
      expect(await service.getAvailableTools(sessionId, TOOLS)).toEqual(TOOLS);
      await service.assertToolAllowed(sessionId, 'x');
      const state = await service.processToolUsage(sessionId, 'x');
      expect(state).toMatchObject({ recentlyUsedTools: ['x'], toolHistory: [{ tool: 'x' }] });
      expect(state).not.toHaveProperty('activeStep');
      await service.processToolUsage(sessionId, 'b');
      expect(await states.getState(sessionId)).toMatchObject({ activeStep: 'second' });
    });

    it('ORC-25 ORC-06 resumes its sequence when it is entered again', async () => {
      const sessionId = mintId();
      const desk = of([
        { name: 'start', isDefault: true, sequence: ['x', 'y', 'z'] },
        { name: 'aside', conditions: [{ type: 'last_tool', value: 'help' }], sequence: ['p', 'q'] },
      ]);
      await using('x', 'help', 'p')(desk, sessionId);
      expect(await desk.states.getState(sessionId)).toMatchObject({ activeStep: 'aside', sequenceIndex: 1 });
      expect(await desk.states.setActiveStep(sessionId, 'start')).toMatchObject({
        sequenceIndex: 1,
        progress: { aside: 1 },
      });
      await using('y')(desk, sessionId);
      expect(await desk.service.getAvailableTools(sessionId, ['x', 'y', 'z'])).toEqual(['z']);
    });

    it('ORC-25 is entered only by name if it has no conditions', async () => {
      const sessionId = mintId();
      const desk = of([{ name: 'manual' }, start]);
      await using('a')(desk, sessionId);
      expect((await desk.service.getActiveStep(sessionId))?.name).toBe('start');
      await desk.states.setActiveStep(sessionId, 'manual');
      await using('a')(desk, sessionId);
      expect((await desk.service.getActiveStep(sessionId))?.name).toBe('manual');
    });
  });

  describe('ORC-26 ORC-27 conditions', () => {
    const later = Array.from({ length: 10 }, (_, n) => `t${n}`);

    it.each<[string, OrchestrationCondition, string[], boolean]>([
      ['tool_used: it was', { type: 'tool_used', value: 'a' }, ['a', 'b'], true],
      ['tool_used: it was not', { type: 'tool_used', value: 'a' }, ['ab', 'b'], false],
      ['tool_used: it failed', { type: 'tool_used', value: 'a' }, ['a!', 'b'], false],
      ['last_tool: it is', { type: 'last_tool', value: 'a' }, ['b', 'a'], true],
      ['last_tool: it failed', { type: 'last_tool', value: 'a' }, ['b', 'a!'], false],
      ['tool_count: enough', { type: 'tool_count', value: 'a', count: 2 }, ['a', 'b', 'a'], true],
      ['tool_count: one too few', { type: 'tool_count', value: 'a', count: 2 }, ['a', 'b', 'a!'], false],
      ['tool_failed: not even once', { type: 'tool_failed', value: 'a' }, ['a', 'b!'], false],
      ['not', { type: 'not', condition: { type: 'tool_used', value: 'a' } }, ['b'], true],
      ['not: it does hold', { type: 'not', condition: { type: 'tool_used', value: 'a' } }, ['a'], false],
      [
        'any_of',
        {
          type: 'any_of',
          conditions: [
            { type: 'tool_used', value: 'a' },
            { type: 'tool_used', value: 'b' },
          ],
        },
        ['b'],
        true,
      ],
      ['any_of: none', { type: 'any_of', conditions: [{ type: 'tool_used', value: 'a' }] }, ['b'], false],
    ])('ORC-26 ORC-27 %s', async (_, condition, tools, holds) => {
      expect(await stepAfter([condition], using(...tools))).toBe(holds ? 'next' : 'ask');
    });

    it('ORC-27 tool_failed leads on as soon as it failed often enough, past a sequence that waits for it', async () => {
      const sessionId = mintId();
      const desk = of([
        { name: 'ask', isDefault: true, sequence: ['book'] },
        { name: 'next', conditions: [{ type: 'tool_failed', value: 'book', count: 2 }] },
      ]);
      await using('book!')(desk, sessionId);
      expect((await desk.service.getActiveStep(sessionId))?.name).toBe('ask');
      await using('book!')(desk, sessionId);
      expect(await desk.states.getState(sessionId)).toMatchObject({ activeStep: 'next', progress: { ask: 0 } });
    });

    it('ORC-26 tool_used looks at the recent tools only', async () => {
      const recent: OrchestrationCondition = { type: 'tool_used', value: 'a' };
      const last: OrchestrationCondition = { type: 'last_tool', value: 't9' };
      expect(await stepAfter([last, recent], using('a', ...later))).toBe('ask');
      expect(await stepAfter([last, recent], using('x', ...later.slice(0, 8), 'a', 't9'))).toBe('next');
    });

    it.each<[string, OrchestrationStep['sequence'], string[], boolean]>([
      ['the last uses, in order', ['a', 'b'], ['x', 'a', 'b'], true],
      ['another order', ['a', 'b'], ['b', 'a'], false],
      ['something between', ['a', 'b'], ['a', 'x', 'b'], false],
      ['failures between, which do not count', ['a', 'b'], ['a', 'x!', 'b'], true],
      ['a tool twice', ['a', 'a', 'b'], ['a', 'b', 'a', 'b'], false],
      ['a tool twice, used twice', ['a', 'a', 'b'], ['b', 'a', 'a', 'b'], true],
      ['too few uses', ['a', 'b'], ['b'], false],
      ['a group', ['a', { anyOf: ['b', 'c'] }], ['a', 'c'], true],
      ['an optional tool that was used', ['a', { optional: 'x' }, 'b'], ['a', 'x', 'b'], true],
      ['an optional tool that was not', ['a', { optional: 'x' }, 'b'], ['a', 'b'], true],
      ['another tool in its place', ['a', { optional: 'x' }, 'b'], ['a', 'y', 'b'], false],
    ])('ORC-26 sequence_match: %s', async (_, sequence, tools, holds) => {
      expect(await stepAfter([{ type: 'sequence_match' }], using(...tools), sequence)).toBe(holds ? 'next' : 'ask');
    });

    it('ORC-27 evaluates tokens_over when the active step is evaluated', async () => {
      const over: OrchestrationCondition[] = [{ type: 'tokens_over', value: 10 }];
      const spending =
        (totalTokens: number) =>
        async ({ states, service }: Orchestration, id: string): Promise<void> => {
          await states.addTokenUsage(id, { totalTokens });
          await service.evaluateActiveStep(id);
        };
      expect(await stepAfter(over, spending(10))).toBe('ask');
      expect(await stepAfter(over, spending(11))).toBe('next');
    });

    it.each<[string, object, string | undefined, boolean]>([
      ['matches', { value: '^refund' }, 'refund me', true],
      ['matches elsewhere', { value: '^refund' }, 'a refund', false],
      ['with flags', { value: '^refund$', flags: 'im' }, 'Hello\nREFUND', true],
      ['without flags', { value: '^refund$' }, 'REFUND', false],
      ['no message', { value: '.*' }, undefined, false],
    ])('ORC-27 message_matches: %s', async (_, condition, message, holds) => {
      const conditions = [{ type: 'message_matches', ...condition } as OrchestrationCondition];
      const options = message === undefined ? {} : { message };
      const expected = holds ? 'next' : 'ask';
      expect(await stepAfter(conditions, ({ service }, id) => service.evaluateActiveStep(id, options))).toBe(expected);
      expect(await stepAfter(conditions, ({ service }, id) => service.processToolUsage(id, 'x', options))).toBe(
        expected,
      );
    });

    it('ORC-27 a message is not stored', async () => {
      const sessionId = mintId();
      const { service } = of([{ name: 'next', conditions: [{ type: 'message_matches', value: 'refund' }] }]);
      await service.processToolUsage(sessionId, 'x', { message: 'refund 4711' });
      const address = { namespace: 'orchestration-state', scope: 'desk', sessionId, key: 'state' };
      expect(JSON.stringify(await store().state.get(address))).not.toContain('4711');
    });
  });

  describe('ORC-27 predicates', () => {
    const PLAN = [
      { name: 'ask', isDefault: true, sequence: ['a', 'b'] },
      { name: 'late', conditions: [{ type: 'predicate', value: 'is-late' }] },
    ] as const;

    it('ORC-27 are evaluated with the state after the use', async () => {
      const sessionId = mintId();
      const asked: unknown[] = [];
      const isLate = (context: { state: { recentlyUsedTools: readonly string[] } }): boolean => {
        asked.push(structuredClone(context));
        return context.state.recentlyUsedTools.includes('b');
      };
      const { service } = of(PLAN, {}, { 'is-late': isLate });
      expect(await service.processToolUsage(sessionId, 'a', { message: 'hi' })).toMatchObject({ activeStep: 'ask' });
      expect(await service.processToolUsage(sessionId, 'b')).toMatchObject({
        activeStep: 'late',
        progress: { ask: 2 },
      });

      expect(asked).toMatchObject([
        { agent: 'desk', sessionId, message: 'hi', state: { recentlyUsedTools: ['a'], sequenceIndex: 1 } },
        { agent: 'desk', sessionId, state: { recentlyUsedTools: ['b', 'a'], sequenceIndex: 2 } },
      ]);
      expect(asked[1]).not.toHaveProperty('message');
    });

    it('ORC-27 are evaluated again if the state changed during the evaluation', async () => {
      const sessionId = mintId();
      const seen: string[][] = [];
      const isLate = async ({ state }: { state: { recentlyUsedTools: readonly string[] } }): Promise<boolean> => {
        seen.push([...state.recentlyUsedTools]);
        if (seen.length === 1) await orchestrate(store()).states.of('desk').addUsedTool(sessionId, 'other');
        return state.recentlyUsedTools.includes('other');
      };
      const { service } = of(PLAN, {}, { 'is-late': isLate });

      expect(await service.processToolUsage(sessionId, 'a')).toMatchObject({ activeStep: 'late', sequenceIndex: 0 });
      expect(seen).toEqual([['a'], ['other', 'a']]);
    });

    it('ORC-27 passes their errors to the caller, and keeps the use recorded', async () => {
      const sessionId = mintId();
      const problem = new Error('No.');
      const { service, states } = of(PLAN, {}, { 'is-late': () => Promise.reject(problem) });
      await expect(service.processToolUsage(sessionId, 'a')).rejects.toBe(problem);

      expect(await states.getState(sessionId)).toMatchObject({ recentlyUsedTools: ['a'], sequenceIndex: 1 });
    });

    it('ORC-27 evaluateActiveStep asks them, and makes the state', async () => {
      const sessionId = mintId();
      let late = false;
      const { service } = of(PLAN, {}, { 'is-late': () => late });
      expect((await service.evaluateActiveStep(sessionId))?.name).toBe('ask');
      late = true;
      expect((await service.evaluateActiveStep(sessionId))?.name).toBe('late');
    });
  });

  describe('ORC-28 assertToolAllowed', () => {
    const steps: OrchestrationStep[] = [
      {
        name: 'ask',
        isDefault: true,
        sequence: ['search', 'book'],
        availableTools: { allowed: ['s*', 'book', 'pay'], denied: ['steal'] },
      },
    ];

    it('ORC-28 rejects by default with the allowed tools, and records nothing', async () => {
      const sessionId = mintId();
      const { service, states } = of(steps);
      await service.assertToolAllowed(sessionId, 'search');
      const refused = await rejection(service.assertToolAllowed(sessionId, 'book'), ToolNotAllowedError);
      expect(refused).toMatchObject({ sessionId, tool: 'book', step: 'ask', allowed: ['search'], denied: [] });
      expect(refused.message).toBe('The tool book is not allowed in step ask. Allowed now: search.');
      expect(await states.getState(sessionId)).toBeNull();

      for (const tool of ['search', 'book']) await service.processToolUsage(sessionId, tool);
      await service.assertToolAllowed(sessionId, 'pay');
      for (const tool of ['steal', 'drop']) {
        expect(await rejection(service.assertToolAllowed(sessionId, tool), ToolNotAllowedError)).toMatchObject({
          allowed: ['s*', 'book', 'pay'],
          denied: ['steal'],
        });
      }
    });

    it('ORC-28 warns with `onViolation: warn`', async () => {
      const sessionId = mintId();
      const { service } = of(steps, { onViolation: 'warn' });
      await service.assertToolAllowed(sessionId, 'book');
      expect(warnings).toEqual([expect.stringContaining('The tool book is not allowed in step ask.')]);
      expect(warnings[0]).not.toContain(sessionId);
    });

    it('ORC-28 restarts the sequence with `onViolation: reset`, and rejects tools that are not allowed even then', async () => {
      const sessionId = mintId();
      const { service, states } = of(steps, { onViolation: 'reset' });
      await service.processToolUsage(sessionId, 'search');
      await service.assertToolAllowed(sessionId, 'search');
      expect(await states.getState(sessionId)).toMatchObject({ sequenceIndex: 0, recentlyUsedTools: ['search'] });
      await service.processToolUsage(sessionId, 'search');
      // A tool that is not allowed at the start either does not reset the progress.
      await rejection(service.assertToolAllowed(sessionId, 'drop'), ToolNotAllowedError);
      expect(await states.getState(sessionId)).toMatchObject({ sequenceIndex: 1 });
    });
  });

  describe('ORC-29 ORC-30 processToolUsage', () => {
    it('ORC-29 continues with the next step after the sequence, and starts it again on return', async () => {
      const sessionId = mintId();
      const desk = of([
        { name: 'ask', isDefault: true, sequence: ['search', 'book'], onComplete: 'pay' },
        { name: 'pay', sequence: ['card'], onComplete: 'ask' },
      ]);
      await using('search', 'book')(desk, sessionId);
      expect(await desk.states.getState(sessionId)).toMatchObject({
        activeStep: 'pay',
        sequenceIndex: 0,
        progress: { ask: 0 },
      });
      await using('card', 'search')(desk, sessionId);
      expect(await desk.states.getState(sessionId)).toMatchObject({ activeStep: 'ask', sequenceIndex: 1 });
    });

    it('ORC-30 records, then advances, then looks for the active step', async () => {
      const sessionId = mintId();
      const { service } = of([
        { name: 'ask', isDefault: true, sequence: ['search', 'book'] },
        { name: 'next', conditions: [{ type: 'last_tool', value: 'search' }], sequence: ['search'] },
      ]);
      expect(await service.processToolUsage(sessionId, 'search', { callId: 'one' })).toMatchObject({
        activeStep: 'next',
        sequenceIndex: 0,
        progress: { ask: 1 },
        toolHistory: [{ tool: 'search', step: 'ask', callId: 'one', outcome: 'succeeded' }],
      });
      expect(await service.processToolUsage(sessionId, 'search', { callId: 'one' })).toMatchObject({
        sequenceIndex: 0,
        toolHistory: [{ callId: 'one' }],
      });
    });

    it('ORC-30 records a tool out of order with a warning, and keeps the position', async () => {
      const sessionId = mintId();
      const { service } = of([{ name: 'ask', isDefault: true, sequence: ['search', 'book'] }]);
      expect(await service.processToolUsage(sessionId, 'book')).toMatchObject({
        sequenceIndex: 0,
        recentlyUsedTools: ['book'],
      });
      expect(warnings).toEqual([expect.stringMatching(/used book in step ask\. Allowed: search\./)]);
    });

    it('ORC-31 allows all tools to an agent without steps, and stores nothing', async () => {
      for (const desk of [orchestrate(store()), of([])]) {
        const sessionId = mintId();
        expect(await desk.service.processToolUsage(sessionId, 'x')).toBeNull();
        expect(await desk.service.getAvailableTools(sessionId, TOOLS)).toEqual(TOOLS);
        expect(await desk.service.getActiveStep(sessionId)).toBeUndefined();
        expect(await desk.service.evaluateActiveStep(sessionId)).toBeUndefined();
        await desk.service.assertToolAllowed(sessionId, 'x');
        expect(await desk.states.getState(sessionId)).toBeNull();
      }
    });
  });

  it('ORC-11 the budget is checked before the model is called', async () => {
    const sessionId = mintId();
    const { service, states } = of([{ name: 'ask', isDefault: true }], { tokenBudget: 10 });
    await service.assertTokenBudget(sessionId);
    await states.addTokenUsage(sessionId, { totalTokens: 9 });
    await service.assertTokenBudget(sessionId);
    await states.addTokenUsage(sessionId, { totalTokens: 1 });
    const refused = await rejection(service.assertTokenBudget(sessionId), TokenBudgetExceededError);
    expect(refused).toMatchObject({ sessionId, usedTokens: 10, tokenBudget: 10, code: 'TOKEN_BUDGET_EXCEEDED' });

    const [steps, other] = [of([], { tokenBudget: 5 }), of([{ name: 'ask', isDefault: true }])];
    await rejection(steps.service.assertTokenBudget(sessionId), TokenBudgetExceededError);
    await other.service.assertTokenBudget(sessionId);
  });
});
