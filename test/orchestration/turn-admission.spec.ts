import {
  type OrchestrationStep,
  type StepPredicateContext,
  StepPredicate,
  ToolNotAllowedError,
} from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { gate, LIVE_STORES, rejection } from '../support/running-application.js';
import { startDesk, toolsOf, type Work } from './turn-desk.js';

const PAY_ONCE: readonly OrchestrationStep[] = [
  { name: 'open', isDefault: true },
  { name: 'paid', conditions: [{ type: 'tool_used', value: 'pay' }], availableTools: { denied: ['pay'] } },
];

const statusOf = async (uses: readonly Promise<unknown>[]): Promise<string[]> =>
  (await Promise.allSettled(uses)).map((use) =>
    use.status === 'fulfilled' ? 'done' : use.reason instanceof ToolNotAllowedError ? 'refused' : 'failed',
  );

describe.each(LIVE_STORES)('uses of tools that start in parallel in a turn over $name', ({ open }) => {
  it('FIX-20 runs one of two when the first use makes the plan refuse the second', async () => {
    const { say, session, state, events } = await startDesk(open(), { steps: PAY_ONCE });
    const sessionId = await session();
    const ran: string[] = [];
    let outcomes: string[] = [];
    await say(sessionId, async ({ tools }) => {
      const pay = (id: string) => tools.use('pay', id, () => void ran.push(id));
      outcomes = await statusOf([pay('1'), pay('2')]);
    });
    expect(ran).toEqual(['1']);
    expect(outcomes).toEqual(['done', 'refused']);
    expect((await state(sessionId))?.toolHistory).toMatchObject([{ tool: 'pay', callId: '1', outcome: 'succeeded' }]);
    const violations = () => events.filter(({ type }) => type === 'tool-violated');
    await eventually(() => violations().length > 0);
    expect(violations()).toMatchObject([{ tool: 'pay', step: 'paid' }]);
  });

  it('FIX-20 counts a use while it runs, and runs others that the plan allows beside it', async () => {
    const { say, session, state } = await startDesk(open(), { steps: PAY_ONCE });
    const sessionId = await session();
    const { pass, open: release } = gate();
    const seen: unknown[] = [];
    await say(sessionId, async ({ tools, signal }) => {
      const pay = tools.use('pay', '1', () => pass(signal));
      await tools.use('mail', '2', () => {
        seen.push(tools.activeStep?.name, tools.allowed(['pay', 'mail']), tools.state.toolHistory[0]?.outcome);
        release();
      });
      await pay;
      seen.push(tools.state.toolHistory[0]?.outcome);
    });
    expect(seen).toEqual(['paid', ['mail'], 'admitted', 'succeeded']);
    expect(toolsOf(await state(sessionId))).toEqual(['pay', 'mail']);
  });

  it('FIX-20 takes back what a use that failed had counted for; the outcome is added at the end', async () => {
    const { say, session, state } = await startDesk(open(), { steps: PAY_ONCE });
    const sessionId = await session();
    const { pass, open: release } = gate();
    let outcomes: string[] = [];
    const steps: unknown[] = [];
    await say(sessionId, async ({ tools, signal }) => {
      const failing = tools.use('pay', '1', async () => {
        await pass(signal);
        throw new Error('declined');
      });
      await tools.use('mail', '2', () => null);
      steps.push(tools.activeStep?.name);
      release();
      outcomes = await statusOf([failing]);
      steps.push(tools.activeStep?.name);
      outcomes.push(...(await statusOf([tools.use('pay', '3', () => null)])));
    });
    expect(outcomes).toEqual(['failed', 'done']);
    expect(steps).toEqual(['paid', 'open']);
    expect(await state(sessionId)).toMatchObject({
      activeStep: 'paid',
      recentlyUsedTools: ['pay', 'mail'],
      toolHistory: [
        { callId: '2', outcome: 'succeeded' },
        { callId: '1', outcome: 'failed' },
        { callId: '3', outcome: 'succeeded' },
      ],
    });
  });

  it('FIX-20 admits uses of one sequence only after the one before is over, also the use after the last item', async () => {
    const steps: OrchestrationStep[] = [
      { name: 'booking', isDefault: true, sequence: ['search', 'book'], onComplete: 'after' },
      { name: 'after' },
    ];
    const { say, session, state } = await startDesk(open(), { steps });
    const sessionId = await session();
    const log: string[] = [];
    let outcomes: string[] = [];
    const work: Work = async ({ tools }) => {
      const use = (tool: string, fails = false) =>
        tools.use(tool, `${tool} ${log.length}`, async () => {
          log.push(`${tool} begins`);
          await new Promise((resolve) => setImmediate(resolve));
          log.push(`${tool} ends`);
          if (fails) throw new Error('sold out');
        });
      outcomes = await statusOf([use('search'), use('book', true), use('mail')]);
      outcomes.push(...(await statusOf([use('book'), use('mail')])));
    };
    await say(sessionId, work);
    expect(outcomes).toEqual(['done', 'failed', 'refused', 'done', 'done']);
    expect(log).toEqual(['search', 'book', 'book', 'mail'].flatMap((tool) => [`${tool} begins`, `${tool} ends`]));
    expect(await state(sessionId)).toMatchObject({ activeStep: 'after', progress: { booking: 0 } });
  });

  it('FIX-20 asks predicates between two uses that start in parallel', async () => {
    @StepPredicate('has-paid')
    class HasPaid {
      async holds({ state }: StepPredicateContext): Promise<boolean> {
        await new Promise((resolve) => setImmediate(resolve));
        return state.recentlyUsedTools.includes('pay');
      }
    }
    const steps: OrchestrationStep[] = [
      { name: 'open', isDefault: true },
      { name: 'paid', conditions: [{ type: 'predicate', value: 'has-paid' }], availableTools: { denied: ['pay'] } },
    ];
    const { say, session, state } = await startDesk(open(), { steps }, { providers: [HasPaid] });
    const sessionId = await session();
    let outcomes: string[] = [];
    await say(sessionId, async ({ tools, signal }) => {
      const { pass, open: release } = gate();
      const failing = tools.use('pay', '1', async () => {
        await pass(signal);
        throw new Error('declined');
      });
      outcomes = await statusOf([tools.use('pay', '2', () => null)]);
      release();
      outcomes.push(...(await statusOf([failing])), tools.activeStep!.name);
      outcomes.push(...(await statusOf([tools.use('pay', '3', () => null), tools.use('pay', '4', () => null)])));
    });
    expect(outcomes).toEqual(['refused', 'failed', 'open', 'done', 'refused']);
    expect(await state(sessionId)).toMatchObject({ activeStep: 'paid' });
  });

  it('FIX-20 admits the same uses in the next attempt, and does not refuse those whose results are stored', async () => {
    const { say, session, state } = await startDesk(open(), { steps: PAY_ONCE });
    const sessionId = await session();
    const ran: string[] = [];
    const attempts: string[][] = [];
    await say(sessionId, async ({ tools, attempt }) => {
      const use = (tool: string, id: string) => tools.use(tool, id, () => void ran.push(id));
      attempts.push(await statusOf([use('mail', '1'), use('pay', '2'), use('pay', '3'), use('mail', '4')]));
      if (attempt === 1) throw new Error('again');
    });
    expect(attempts).toEqual([
      ['done', 'done', 'refused', 'done'],
      ['done', 'done', 'refused', 'done'],
    ]);
    expect(ran).toEqual(['1', '2', '4']);
    expect((await state(sessionId))?.toolHistory.map(({ callId }) => callId)).toEqual(['1', '2', '4']);
  });

  it('FIX-20 stores a use that still runs when its turn settles as admitted', async () => {
    const { say, session, state } = await startDesk(open(), { steps: PAY_ONCE });
    const sessionId = await session();
    await say(sessionId, ({ tools, signal }) => {
      void tools.use('pay', '1', () => gate().pass(signal));
      return new Promise((resolve) => setImmediate(resolve));
    });
    expect(await state(sessionId)).toMatchObject({
      activeStep: 'paid',
      toolHistory: [{ tool: 'pay', callId: '1', outcome: 'admitted' }],
    });
    let outcomes: string[] = [];
    await say(sessionId, async ({ tools }) => {
      outcomes = await statusOf([tools.use('pay', '2', () => null)]);
      await rejection(
        tools.use('pay', '3', () => null),
        ToolNotAllowedError,
      );
    });
    expect(outcomes).toEqual(['refused']);
  });
});
