import { type OrchestrationService, type OrchestrationStep, ToolNotAllowedError } from 'nestjs-agent-sessions';
import { mintId } from '../../lib/common/ids.js';
import { describeStores, noteWarnings, orchestrate, type Orchestration, planOf } from '../support/orchestration.js';

/** One payment, then none. */
const PAY_ONCE: readonly OrchestrationStep[] = [
  { name: 'open', isDefault: true },
  { name: 'paid', conditions: [{ type: 'tool_used', value: 'pay' }], availableTools: { denied: ['pay'] } },
  {
    name: 'broken',
    conditions: [{ type: 'tool_failed', value: 'pay', count: 2 }],
    availableTools: { denied: ['pay'] },
  },
];
const IN_ORDER: readonly OrchestrationStep[] = [
  { name: 'ask', isDefault: true, sequence: ['look', 'pay'], onComplete: 'thank' },
  { name: 'thank', availableTools: { allowed: ['thank'] } },
];

type AdmittedTool = Awaited<ReturnType<OrchestrationService['admitTool']>>;

const admitted = (results: readonly PromiseSettledResult<AdmittedTool>[]): AdmittedTool[] =>
  results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));

describeStores('admitTool', (store) => {
  let sessionId: string;

  beforeEach(() => {
    sessionId = mintId();
    noteWarnings();
  });

  /** Two processes with one store. */
  const both = (...args: Parameters<typeof planOf>): readonly Orchestration[] =>
    [1, 2].map(() => orchestrate(store(), { plans: [planOf(...args)] }));

  const race = (services: readonly Orchestration[], tools: readonly string[]) =>
    Promise.allSettled(tools.map((tool, n) => services[n % services.length].service.admitTool(sessionId, tool)));

  it.each([
    ['a condition', PAY_ONCE],
    ['a sequence', [{ name: 'ask', isDefault: true, sequence: ['pay', 'thank'] }] as OrchestrationStep[]],
  ])('FIX-21 admits one of many parallel uses that the plan allows once by %s', async (_, steps) => {
    const processes = both(steps);
    for (let round = 0; round < 5; round += 1) {
      sessionId = mintId();
      const results = await race(
        processes,
        Array.from({ length: 10 }, () => 'pay'),
      );

      expect(admitted(results)).toHaveLength(1);
      for (const result of results) {
        if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(ToolNotAllowedError);
      }
      const { toolHistory } = (await processes[0].states.getState(sessionId))!;
      expect(toolHistory.map(({ tool, outcome }) => `${tool} ${outcome}`)).toEqual(['pay admitted']);
    }
  });

  it('FIX-21 admits one of many when a predicate decides', async () => {
    const steps: OrchestrationStep[] = [
      { name: 'open', isDefault: true },
      { name: 'paid', conditions: [{ type: 'predicate', value: 'was-paid' }], availableTools: { denied: ['pay'] } },
    ];
    const processes = [1, 2].map(() =>
      orchestrate(store(), { plans: [planOf(steps)] }, { 'was-paid': ({ state }) => state.toolHistory.length > 0 }),
    );
    const results = await race(
      processes,
      Array.from({ length: 6 }, () => 'pay'),
    );

    expect(admitted(results)).toHaveLength(1);
    expect(await processes[1].states.getState(sessionId)).toMatchObject({ activeStep: 'paid' });
    await admitted(results)[0].record('failed');
    expect(await processes[1].states.getState(sessionId)).toMatchObject({
      activeStep: 'paid',
      toolHistory: [{ tool: 'pay', outcome: 'failed' }],
    });
  });

  it('FIX-21 counts a use from its admission on, also when its outcome never comes', async () => {
    const [one, two] = both(IN_ORDER);
    await one.service.admitTool(sessionId, 'look');
    expect(await two.states.getState(sessionId)).toMatchObject({ sequenceIndex: 1, recentlyUsedTools: ['look'] });
    await two.service.admitTool(sessionId, 'pay');

    expect(await one.states.getState(sessionId)).toMatchObject({ activeStep: 'thank' });
    await expect(one.service.admitTool(sessionId, 'pay')).rejects.toThrow(
      'The tool pay is not allowed in step thank. Allowed now: thank.',
    );
  });

  it('FIX-21 adds the outcome once', async () => {
    const [one, two] = both(IN_ORDER);
    const use = await one.service.admitTool(sessionId, 'look');
    expect(await use.record('succeeded')).toMatchObject({ sequenceIndex: 1, toolHistory: [{ outcome: 'succeeded' }] });
    expect(await use.record('failed')).toMatchObject({ sequenceIndex: 1, toolHistory: [{ outcome: 'succeeded' }] });

    const { toolHistory } = (await two.states.getState(sessionId))!;
    expect(toolHistory).toEqual([
      { tool: 'look', step: 'ask', callId: use.callId, outcome: 'succeeded', at: expect.any(String) as string },
    ]);
    expect(one.events.map(({ type }) => type)).toEqual(['created', 'sequence-advanced', 'tool-recorded']);
  });

  it('FIX-21 moves the sequence and the step back when the use fails', async () => {
    const [one, two] = both(IN_ORDER);
    await (await one.service.admitTool(sessionId, 'look')).record('succeeded');
    const pay = await one.service.admitTool(sessionId, 'pay');
    expect(pay.state).toMatchObject({ activeStep: 'thank' });
    await pay.record('failed');

    expect(await two.states.getState(sessionId)).toMatchObject({
      activeStep: 'ask',
      sequenceIndex: 1,
      recentlyUsedTools: ['look'],
    });
    await two.service.admitTool(sessionId, 'pay');
  });

  it('FIX-21 lets a failed use be made again, and tool_failed count it', async () => {
    const [one, two] = both(PAY_ONCE);
    await (await one.service.admitTool(sessionId, 'pay')).record('failed');
    expect(await two.states.getState(sessionId)).toMatchObject({ activeStep: 'open', recentlyUsedTools: [] });
    await (await two.service.admitTool(sessionId, 'pay')).record('failed');

    expect(await two.states.getState(sessionId)).toMatchObject({ activeStep: 'broken' });
  });

  it('FIX-21 leaves what later uses have moved when an earlier one fails', async () => {
    const [one, two] = both([{ name: 'ask', isDefault: true, sequence: ['look', 'quote', 'pay'] }]);
    const look = await one.service.admitTool(sessionId, 'look');
    await two.service.admitTool(sessionId, 'quote');

    expect(await look.record('failed')).toMatchObject({ sequenceIndex: 2, recentlyUsedTools: ['quote'] });
  });

  it('FIX-21 admits the same call again and counts it once; another tool may not have its id', async () => {
    const [one, two] = both(PAY_ONCE);
    const options = { callId: 'call 1' };
    const uses = await Promise.all([one, two].map(({ service }) => service.admitTool(sessionId, 'pay', options)));
    expect(uses.map(({ callId }) => callId)).toEqual(['call 1', 'call 1']);
    expect((await one.states.getState(sessionId))!.toolHistory).toHaveLength(1);

    await expect(one.service.admitTool(sessionId, 'look', options)).rejects.toMatchObject({
      code: 'TOOL_CALL_CONFLICT',
    });
    // The outcome by id, from any process.
    await two.service.processToolUsage(sessionId, 'pay', { ...options, outcome: 'failed' });
    expect(await one.states.getState(sessionId)).toMatchObject({ activeStep: 'open', recentlyUsedTools: [] });
    await two.service.admitTool(sessionId, 'pay', options);
  });

  it.each([
    ['the plan’s conditions', [] as OrchestrationStep[], {}],
    [
      'a predicate',
      [{ name: 'never', conditions: [{ type: 'predicate', value: 'never' }] }] as OrchestrationStep[],
      { never: () => false },
    ],
  ])(
    'FIX-21 counts the success of a call that was admitted twice, after the failure of the other, by %s',
    async (_, more, predicates) => {
      const [one, two] = [1, 2].map(() =>
        orchestrate(store(), { plans: [planOf([...PAY_ONCE, ...more])] }, predicates),
      );
      const options = { callId: 'call 1' };
      const first = await one.service.admitTool(sessionId, 'pay', options);
      const second = await two.service.admitTool(sessionId, 'pay', options);
      await first.record('failed');
      // A second outcome of the same admission still has no effect.
      expect(await first.record('succeeded')).toMatchObject({ activeStep: 'open', recentlyUsedTools: [] });

      expect(await second.record('succeeded')).toMatchObject({
        activeStep: 'paid',
        recentlyUsedTools: ['pay'],
        toolHistory: [{ outcome: 'failed' }, { outcome: 'succeeded', callId: 'call 1' }],
      });
      expect((await second.record('succeeded'))?.toolHistory).toHaveLength(2);
      expect((await first.record('failed'))?.activeStep).toBe('paid');
      await expect(one.service.admitTool(sessionId, 'pay', { callId: 'call 2' })).rejects.toThrow(ToolNotAllowedError);
    },
  );

  it('FIX-21 with warn admits and logs, with reset starts the sequence over', async () => {
    const warnings = noteWarnings();
    const [warning] = both(IN_ORDER, { onViolation: 'warn' });
    await warning.service.admitTool(sessionId, 'pay');
    expect(warnings.filter((line) => line.includes('pay'))).toHaveLength(1);
    expect(await warning.states.getState(sessionId)).toMatchObject({ sequenceIndex: 0, recentlyUsedTools: ['pay'] });

    sessionId = mintId();
    const [resetting] = both(IN_ORDER, { onViolation: 'reset' });
    await resetting.service.admitTool(sessionId, 'look');
    const again = await resetting.service.admitTool(sessionId, 'look');
    expect(again.state).toMatchObject({ sequenceIndex: 1 });
    expect(await again.record('failed')).toMatchObject({ sequenceIndex: 0 });
    for (const { events } of [warning, resetting]) {
      expect(events.filter(({ type }) => type === 'tool-violated')).toHaveLength(1);
    }
  });

  it('FIX-21 allows everything without a plan, and stores nothing', async () => {
    const { service, states } = orchestrate(store());
    const use = await service.admitTool(sessionId, 'pay');

    expect(use.state).toBeNull();
    expect(await use.record('succeeded')).toBeNull();
    expect(await states.getState(sessionId)).toBeNull();
  });

  it('FIX-21 gives no state back that was removed before the outcome', async () => {
    const [one] = both(PAY_ONCE);
    const use = await one.service.admitTool(sessionId, 'pay');
    await one.states.removeSession(sessionId);

    expect(await use.record('succeeded')).toBeNull();
    expect(await one.states.getState(sessionId)).toBeNull();
  });

  it('FIX-21 means the same in a folded state', async () => {
    const [one, two] = both(PAY_ONCE);
    const use = await one.service.admitTool(sessionId, 'pay');
    for (let n = 0; n < 40; n += 1) await two.states.addTokenUsage(sessionId, { promptTokens: 1 });

    expect(await use.record('failed')).toMatchObject({ activeStep: 'open', recentlyUsedTools: [] });
  });

  it('FIX-21 takes a history with an admitted use in updateState', async () => {
    const [one] = both(PAY_ONCE);
    const use = await one.service.admitTool(sessionId, 'pay');
    await one.states.updateState(sessionId, ({ toolHistory }) => ({ toolHistory }));

    expect(await use.record('failed')).toMatchObject({ activeStep: 'open' });
  });
});
