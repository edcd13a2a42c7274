import {
  type OrchestrationEvent,
  OrchestrationEvents,
  OrchestrationService,
  OrchestrationStateManager,
  StepSequencer,
} from 'nestjs-agent-sessions';
import { mintId } from '../../lib/common/ids.js';
import { describeStores, noteWarnings, orchestrate, planOf } from '../support/orchestration.js';
import { startApplication } from '../support/running-application.js';

const PLAN = planOf(
  [
    { name: 'ask', isDefault: true, sequence: ['search', 'book'], onComplete: 'pay' },
    { name: 'pay', availableTools: { allowed: ['card'] } },
  ],
  { tokenBudget: 10 },
);

describeStores('events of orchestration', (store) => {
  beforeEach(() => void noteWarnings());

  it('ORC-32 emits each use and its effects, in order and after the commit', async () => {
    const sessionId = mintId();
    const { service, states, events } = orchestrate(store(), { plans: [PLAN] });
    const about = { agent: 'desk', sessionId };
    const told = (): OrchestrationEvent[] => events.splice(0);

    await service.processToolUsage(sessionId, 'search', { callId: 'one' });
    const recorded = { ...about, type: 'tool-recorded', tool: 'search', step: 'ask', outcome: 'succeeded' };
    expect(told()).toEqual([
      { ...about, type: 'created' },
      { ...recorded, callId: 'one' },
      { ...about, type: 'sequence-advanced', step: 'ask', index: 1 },
    ]);
    await service.processToolUsage(sessionId, 'search', { callId: 'one' });
    expect(told()).toEqual([]);
    await service.processToolUsage(sessionId, 'search');
    expect(told()).toEqual([
      recorded,
      { ...about, type: 'tool-violated', tool: 'search', step: 'ask', allowed: ['book'] },
    ]);
    await service.processToolUsage(sessionId, 'book', { outcome: 'failed' });
    expect(told()).toEqual([{ ...recorded, tool: 'book', outcome: 'failed' }]);
    await service.processToolUsage(sessionId, 'book');
    expect(told()).toEqual([
      { ...recorded, tool: 'book' },
      { ...about, type: 'sequence-advanced', step: 'ask', index: 2 },
      { ...about, type: 'sequence-completed', step: 'ask' },
      { ...about, type: 'step-changed', from: 'ask', to: 'pay' },
    ]);
    await expect(service.assertToolAllowed(sessionId, 'search')).rejects.toThrow();
    expect(told()).toEqual([{ ...about, type: 'tool-violated', tool: 'search', step: 'pay', allowed: ['card'] }]);

    await states.setActiveStep(sessionId, 'pay');
    expect(told()).toEqual([]);
    await states.setActiveStep(sessionId, 'ask');
    expect(told()).toEqual([{ ...about, type: 'step-changed', from: 'pay', to: 'ask' }]);
    await states.advanceSequence(sessionId);
    expect(told()).toEqual([{ ...about, type: 'sequence-advanced', step: 'ask', index: 1 }]);
    await states.setActiveStep(sessionId, undefined);
    expect(told()).toEqual([{ ...about, type: 'step-changed', from: 'ask' }]);

    await states.addTokenUsage(sessionId, { totalTokens: 12 });
    expect(told()).toEqual([]);
    await expect(service.assertTokenBudget(sessionId)).rejects.toThrow();
    expect(told()).toEqual([{ ...about, type: 'token-budget-exceeded', usedTokens: 12, tokenBudget: 10 }]);
  });

  it('FIX-28 emits a violation once, for a use that the sequence or the step does not allow', async () => {
    const lenient = planOf(
      [{ name: 'ask', isDefault: true, sequence: ['search', 'book'], availableTools: { denied: ['pay'] } }],
      { onViolation: 'warn' },
    );
    const { service, events } = orchestrate(store(), { plans: [lenient] });
    const violations = (): string[] =>
      events.splice(0).flatMap((event) => (event.type === 'tool-violated' ? [`${event.tool} in ${event.step}`] : []));
    const checked = mintId();
    for (const tool of ['book', 'pay', 'search']) {
      await service.assertToolAllowed(checked, tool);
      await service.processToolUsage(checked, tool, { outcome: tool === 'pay' ? 'failed' : 'succeeded' });
    }
    expect(violations()).toEqual(['book in ask', 'pay in ask']);

    const admitted = mintId();
    for (const tool of ['book', 'pay', 'search']) await (await service.admitTool(admitted, tool)).record('succeeded');
    expect(violations()).toEqual(['book in ask', 'pay in ask']);

    const strict = orchestrate(store(), { plans: [PLAN] });
    await expect(strict.service.assertToolAllowed(mintId(), 'book')).rejects.toThrow();
    await expect(strict.service.admitTool(mintId(), 'book')).rejects.toThrow();
    await strict.service.processToolUsage(mintId(), 'book');
    expect(strict.events.filter(({ type }) => type === 'tool-violated')).toHaveLength(3);
  });

  it('FIX-28 emits created, reset and removed, each once', async () => {
    const sessionId = mintId();
    const processes = Array.from({ length: 4 }, () => orchestrate(store(), { plans: [PLAN] }));
    const told = (): string[] => processes.flatMap(({ events }) => events.splice(0).map(({ type }) => type));
    const [{ states }] = processes;
    await states.resetState(sessionId);
    expect(told()).toEqual(['reset']);
    await states.getOrCreateState(sessionId);
    await states.removeSession(sessionId);
    await states.removeSession(sessionId);
    expect(told()).toEqual(['removed']);
    await Promise.all(
      processes.map(({ states: each, service }, n) =>
        n % 2 === 0 ? each.getOrCreateState(sessionId) : service.processToolUsage(sessionId, 'search', { callId: 'c' }),
      ),
    );
    expect(told().sort()).toEqual(['created', 'sequence-advanced', 'tool-recorded']);
    await states.resetState(sessionId);
    await states.addUsedTool(sessionId, 'x');
    expect(told()).toEqual(['reset', 'tool-recorded']);
  });

  it('ORC-32 emits no change when the default step becomes the active one', async () => {
    const sessionId = mintId();
    const { states, service, events } = orchestrate(store(), { plans: [PLAN] });
    await states.getOrCreateState(sessionId);
    await states.setActiveStep(sessionId, 'ask');
    expect(events).toEqual([{ agent: 'desk', sessionId, type: 'created' }]);
    const other = mintId();
    await service.processToolUsage(other, 'search');
    expect(events.filter(({ type }) => type === 'step-changed')).toEqual([]);
  });

  it('ORC-32 emits only committed changes, each from its writer, under concurrent writes', async () => {
    const sessionId = mintId();
    const processes = Array.from({ length: 5 }, () => orchestrate(store(), { plans: [PLAN] }));
    await Promise.all(
      processes.map(({ sequencer }, n) =>
        sequencer.processTool(PLAN.steps[0], sessionId, 'search', { callId: n < 2 ? 'same' : `call ${n}` }),
      ),
    );

    const told = processes.flatMap(({ events }) => events);
    expect(told.filter(({ type }) => type === 'tool-recorded')).toHaveLength(4);
    expect(told.filter(({ type }) => type === 'sequence-advanced')).toHaveLength(1);
    expect(told.filter(({ type }) => type === 'tool-violated')).toHaveLength(3);
  });
});

describe('orchestration under Nest', () => {
  it('ORC-15 ORC-32 the classes are injectable, share their states, and tell one stream', async () => {
    const { app, session } = await startApplication({ orchestrators: [PLAN] });
    const sessionId = await session();
    const heard: string[] = [];
    app.get(OrchestrationEvents).stream.subscribe(({ type }) => heard.push(type));
    const off = app.get(OrchestrationEvents).on('tool-recorded', ({ tool }) => heard.push(tool));
    await app.get(StepSequencer).processTool(PLAN.steps[0], sessionId, 'search');
    off();
    await app.get(OrchestrationService).processToolUsage(sessionId, 'book');

    expect(await app.get(OrchestrationStateManager).getState(sessionId)).toMatchObject({
      activeStep: 'pay',
      recentlyUsedTools: ['book', 'search'],
    });
    expect(heard).toEqual([
      'created',
      'tool-recorded',
      'search',
      'sequence-advanced',
      'tool-recorded',
      'sequence-advanced',
      'sequence-completed',
      'step-changed',
    ]);
  });

  it('ORC-32 ignores an error thrown by a listener', async () => {
    const { app, session } = await startApplication({ orchestrators: [PLAN] });
    const sessionId = await session();
    app.get(OrchestrationEvents).on('tool-recorded', () => {
      throw new Error('No.');
    });
    const state = await app.get(OrchestrationService).processToolUsage(sessionId, 'search');
    expect(state).toMatchObject({ sequenceIndex: 1 });
  });
});
