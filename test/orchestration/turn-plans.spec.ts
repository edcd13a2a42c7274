import {
  type OrchestrationStep,
  reply,
  type StepPredicateContext,
  type StepPredicateHandler,
  StepPredicate,
  ToolNotAllowedError,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { anyNumber } from '../support/orchestration.js';
import { LIVE_STORES, rejection } from '../support/running-application.js';
import { keepWarnings, startDesk, toolsOf, useAll } from './turn-desk.js';
import { inProduction } from '../support/production.js';

inProduction();

const REFUNDS: readonly OrchestrationStep[] = [
  { name: 'triage', isDefault: true, availableTools: { denied: ['refund*'] } },
  {
    name: 'refund',
    description: 'Give the money back.',
    conditions: [{ type: 'message_matches', value: 'money', flags: 'i' }],
    sequence: ['search', 'search', 'refund_order'],
    onComplete: 'goodbye',
  },
  { name: 'goodbye', availableTools: { allowed: ['mail'] } },
];
const TOOLS = ['refund_order', 'mail', 'search'];
const SEARCHING: readonly OrchestrationStep[] = [
  { name: 'booking', isDefault: true, sequence: ['search', 'quote', 'book'], availableTools: { denied: ['delete'] } },
];

describe.each(LIVE_STORES)('a plan inside turns over $name', ({ open }) => {
  it('ORC-25 ORC-28 ORC-29 ORC-30 the message leads to a step, its sequence through tools of several turns to the next', async () => {
    const { say, session, state } = await startDesk(open(), { steps: REFUNDS });
    const sessionId = await session();
    const seen: unknown[] = [];
    await say(sessionId, ({ tools }) => {
      seen.push(tools.activeStep?.name, tools.allowed(TOOLS), tools.state.toolHistory, tools.toAIOrchestrationState());
    });
    await say(
      sessionId,
      async (turn) => {
        const { tools } = turn;
        seen.push(tools.activeStep?.name, tools.allowed(TOOLS), tools.toAIOrchestrationState());
        await useAll(turn, 'search');
        seen.push(tools.allowed(TOOLS), tools.state.sequenceIndex);
      },
      'My MONEY, please.',
    );
    const between = await state(sessionId);
    await say(sessionId, async (turn) => {
      await useAll(turn, 'search', 'refund_order');
      seen.push(turn.tools.activeStep?.name, turn.tools.allowed(TOOLS));
      await useAll(turn, 'mail');
    });

    expect(seen).toEqual([
      'triage',
      ['mail', 'search'],
      [],
      { activeStep: 'triage', recentlyUsedTools: [], sequenceIndex: 0, allowedTools: ['*'], deniedTools: ['refund*'] },
      'refund',
      ['search'],
      {
        activeStep: 'refund',
        stepDescription: 'Give the money back.',
        recentlyUsedTools: [],
        sequenceIndex: 0,
        allowedTools: ['search'],
      },
      ['search'],
      1,
      'goodbye',
      ['mail'],
    ]);
    expect(between).toMatchObject({ activeStep: 'refund', sequenceIndex: 1, recentlyUsedTools: ['search'] });
    expect(await state(sessionId)).toMatchObject({
      activeStep: 'goodbye',
      sequenceIndex: 0,
      progress: { refund: 0 },
      recentlyUsedTools: ['mail', 'refund_order', 'search'],
      toolHistory: [
        { tool: 'search', step: 'refund', outcome: 'succeeded' },
        { tool: 'search', step: 'refund' },
        { tool: 'refund_order', step: 'refund' },
        { tool: 'mail', step: 'goodbye' },
      ],
    });
  });

  it('ORC-28 reject: does not run a tool that is not allowed, reports the allowed ones, and fails the turn at once', async () => {
    const { app, say, session, state, events } = await startDesk(open(), { steps: SEARCHING });
    const sessionId = await session();
    await say(sessionId, (turn) => useAll(turn, 'search'));
    const before = await state(sessionId);
    const ran: string[] = [];
    const refusals: unknown[] = [];

    const failure = rejection(
      say(sessionId, async ({ tools }) => {
        await tools.use('quote', 'q', () => void ran.push('quote'));
        refusals.push(
          await rejection(
            tools.use('search', 's', () => void ran.push('search')),
            ToolNotAllowedError,
          ),
        );
        await tools.use('delete', 'd', () => void ran.push('delete'));
      }),
      ToolNotAllowedError,
    );
    const { code, turnId } = await failure;

    expect(refusals).toMatchObject([
      { tool: 'search', step: 'booking', allowed: ['book'], sessionId, permanent: true },
    ]);
    expect(code).toBe('TOOL_NOT_ALLOWED');
    expect(await app.turns.get(turnId!)).toMatchObject({ failures: 1 });
    expect(ran).toEqual(['quote']);
    expect(await state(sessionId)).toEqual({ ...before, version: anyNumber(), lastAccessed: anyNumber() });
    const violations = events.filter(({ type }) => type === 'tool-violated');
    expect(violations).toEqual([
      { type: 'tool-violated', agent: 'desk', sessionId, tool: 'search', step: 'booking', allowed: ['book'] },
      { type: 'tool-violated', agent: 'desk', sessionId, tool: 'delete', step: 'booking', allowed: ['book'] },
    ]);
  });

  it('ORC-28 reject: settles a turn that continues without the tool, with its other uses', async () => {
    const { say, session, state } = await startDesk(open(), { steps: SEARCHING });
    const sessionId = await session();
    await say(sessionId, async (turn) => {
      await useAll(turn, 'search');
      await turn.tools.use('book', 'b', () => null).catch(() => null);
      await turn.tools.use('quote', 'q', () => null);
    });
    expect(toolsOf(await state(sessionId))).toEqual(['search', 'quote']);
    expect(await state(sessionId)).toMatchObject({ sequenceIndex: 2 });
  });

  it('ORC-28 warn: runs and records the tool, keeps the sequence, and warns once', async () => {
    const logger = keepWarnings();
    const desk = await startDesk(open(), { steps: SEARCHING, onViolation: 'warn' }, { logger });
    const sessionId = await desk.session();

    const { reply: text } = await desk.say(sessionId, async ({ tools }) => {
      const booked = await tools.use('book', 'b', () => 'booked');
      await tools.use('search', 's', () => null);
      await tools.use('delete', 'd', () => null);
      return reply(booked);
    });

    expect(text).toBe('booked');
    expect(await desk.state(sessionId)).toMatchObject({
      sequenceIndex: 1,
      recentlyUsedTools: ['delete', 'search', 'book'],
    });
    expect(logger.warnings.filter((line) => line.includes('not allowed'))).toEqual([
      expect.stringContaining('The tool book is not allowed in step booking. Allowed now: search.'),
      expect.stringContaining('The tool delete is not allowed in step booking. Allowed now: quote.'),
    ]);
    expect(logger.warnings.join()).not.toContain(sessionId);
    const violations = () => desk.events.filter(({ type }) => type === 'tool-violated');
    await eventually(() => violations().length > 1);
    expect(violations()).toMatchObject([
      { tool: 'book', step: 'booking', allowed: ['search'] },
      { tool: 'delete', step: 'booking', allowed: ['quote'] },
    ]);
  });

  it('ORC-28 reset: restarts the sequence, also when the turn is retried, and rejects tools that are not allowed even then', async () => {
    const { say, session, state, events } = await startDesk(open(), { steps: SEARCHING, onViolation: 'reset' });
    const sessionId = await session();
    await say(sessionId, (turn) => useAll(turn, 'search', 'quote'));
    expect(await state(sessionId)).toMatchObject({ sequenceIndex: 2 });
    const ran: string[] = [];

    await say(sessionId, async ({ tools, attempt }) => {
      const use = (tool: string) => tools.use(tool, tool, () => (ran.push(tool), tool));
      await use('search');
      expect(tools.state.sequenceIndex).toBe(1);
      if (attempt === 1) throw new Error('after the search');
      await use('quote');
      await use('book');
    });
    expect(ran).toEqual(['search', 'quote', 'book']);
    expect(await state(sessionId)).toMatchObject({ sequenceIndex: 3 });
    const violations = () => events.filter(({ type }) => type === 'tool-violated');
    await eventually(() => violations().length > 0);
    expect(violations()).toMatchObject([{ tool: 'search', allowed: ['book'] }]);

    await say(sessionId, async ({ tools }) => {
      await rejection(
        tools.use('delete', 'd', () => null),
        ToolNotAllowedError,
      );
    });
    // A tool that is not allowed at the start either does not reset the progress.
    expect(await state(sessionId)).toMatchObject({ sequenceIndex: 3, activeStep: 'booking' });
  });

  it('ORC-29 groups, optional tools and resetSequenceOn hold from turn to turn', async () => {
    const steps: OrchestrationStep[] = [
      {
        name: 'trip',
        isDefault: true,
        sequence: ['search', { anyOf: ['fly', 'drive'] }, { optional: 'insure' }, 'pay'],
        resetSequenceOn: ['cancel'],
        onComplete: 'done',
      },
      {
        name: 'done',
        conditions: [
          { type: 'not', condition: { type: 'last_tool', value: 'reopen' } },
          { type: 'last_tool', value: 'done' },
        ],
      },
    ];
    const tools = ['search', 'fly', 'drive', 'insure', 'pay', 'cancel'];
    const { say, session, state } = await startDesk(open(), { steps });
    const sessionId = await session();
    const allowed: string[][] = [];
    for (const tool of ['search', 'drive', 'cancel', 'search', 'fly', 'insure', 'pay']) {
      await say(sessionId, async (turn) => {
        allowed.push(turn.tools.allowed(tools));
        await useAll(turn, tool);
      });
    }
    expect(allowed).toEqual([
      ['search', 'cancel'],
      ['fly', 'drive', 'cancel'],
      ['insure', 'pay', 'cancel'],
      ['search', 'cancel'],
      ['fly', 'drive', 'cancel'],
      ['insure', 'pay', 'cancel'],
      ['pay', 'cancel'],
    ]);
    expect(await state(sessionId)).toMatchObject({ activeStep: 'done', progress: { trip: 0 } });
  });

  it('ORC-25 ORC-27 a tool that failed leads to the step for it, a message only to the turn that it came with', async () => {
    const steps: OrchestrationStep[] = [
      { name: 'calm', isDefault: true },
      {
        name: 'alarm',
        conditions: [{ type: 'tool_failed', value: 'pay', count: 2 }],
        availableTools: { allowed: ['call'] },
      },
      {
        name: 'angry',
        conditions: [
          { type: 'message_matches', value: '!$' },
          { type: 'last_tool', value: 'look' },
        ],
      },
    ];
    const { say, session, state } = await startDesk(open(), { steps });
    const sessionId = await session();
    const entered: unknown[] = [];
    await say(sessionId, (turn) => useAll(turn, 'look'), 'Well.');
    entered.push((await state(sessionId))?.activeStep);
    await say(sessionId, ({ tools }) => void entered.push(tools.activeStep?.name), 'Well!');
    await say(sessionId, async ({ tools }) => {
      for (const call of ['a', 'b']) {
        await tools.use('pay', call, () => Promise.reject(new Error('no'))).catch(() => null);
        entered.push(tools.activeStep?.name);
      }
    });
    entered.push((await state(sessionId))?.activeStep);
    expect(entered).toEqual(['calm', 'angry', 'angry', 'alarm', 'alarm']);
  });

  it('ORC-27 asks predicates when a turn begins and after each tool; one that throws is an error of the turn', async () => {
    const asked: StepPredicateContext[] = [];
    let isDown = false;
    @StepPredicate('is-vip')
    class IsVip implements StepPredicateHandler {
      async holds(context: StepPredicateContext): Promise<boolean> {
        asked.push(context);
        if (isDown) throw new Error('The CRM went down.');
        if (context.message === 'broken') throw new Error('The CRM is down.');
        return context.message === 'vip' || context.state.recentlyUsedTools.includes('pay');
      }
    }
    const steps: OrchestrationStep[] = [
      { name: 'anybody', isDefault: true },
      {
        name: 'vip',
        conditions: [{ type: 'predicate', value: 'is-vip' }],
        availableTools: { allowed: ['pay', 'champagne'] },
      },
    ];
    const { app, say, session, state } = await startDesk(open(), { steps }, { providers: [IsVip] });
    const [ann, bob, eve] = [await session(), await session(), await session()];

    await say(ann, (turn) => useAll(turn, 'look', 'pay', 'champagne'), 'hello');
    // Uses that the plan limits are stored before they begin, with the answers that they lead to: `look` and `pay` (FIX-88).
    expect(asked.map(({ state: { toolHistory } }) => toolHistory.length)).toEqual([0, 1, 1, 2, 3]);
    expect(asked[0]).toMatchObject({ agent: 'desk', sessionId: ann, message: 'hello' });
    expect(await state(ann)).toMatchObject({
      activeStep: 'vip',
      toolHistory: [{ step: 'anybody' }, { step: 'anybody' }, { step: 'vip' }],
    });

    await say(bob, ({ tools }) => void expect(tools.activeStep?.name).toBe('vip'), 'vip');
    expect(await state(bob)).toMatchObject({ activeStep: 'vip', toolHistory: [] });

    const used: unknown[] = [];
    const late = await rejection(
      say(eve, async ({ tools }) => {
        // The predicate fails after the use, in every attempt.
        isDown = used.length > 0;
        used.push(
          await tools.use('look', '1', () => {
            isDown = true;
            return 'seen';
          }),
        );
        isDown = false;
      }),
      TurnFailedError,
    );
    // The tool succeeded; the turn failed.
    expect(used).toEqual(['seen', 'seen', 'seen']);
    expect(late.failure).toMatchObject({ message: 'The CRM went down.' });

    const error = await rejection(
      say(eve, () => 'not reached', 'broken'),
      TurnFailedError,
    );
    expect(error.failure).toMatchObject({ message: 'The CRM is down.' });
    expect(await app.turns.get(error.turnId)).toMatchObject({ failures: 3 });
    expect(await state(eve)).toMatchObject({ toolHistory: [], recentlyUsedTools: [] });
  });
});
