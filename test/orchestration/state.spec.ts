import {
  InvalidInputError,
  type OrchestrationState,
  SessionsConfigurationError,
  type ToolUse,
  UnreadableRecordError,
} from 'nestjs-agent-sessions';
import { mintId } from '../../lib/common/ids.js';
import { clockGoesOn } from '../support/eventually.js';
import { anyNumber, anyText, describeStores, orchestrate, planOf } from '../support/orchestration.js';
import { rejection } from '../support/running-application.js';

const DAY = 86_400_000;

const PLAN = planOf([
  { name: 'ask', description: 'Find out.', isDefault: true, sequence: ['search', 'search', 'book'] },
  { name: 'help', description: 'Call somebody.', sequence: ['page', 'call'], availableTools: { denied: ['book'] } },
  { name: 'free' },
]);

const FRESH = {
  recentlyUsedTools: [],
  toolHistory: [],
  sequenceIndex: 0,
  progress: {},
  cumulativeTokenUsage: { promptTokens: 0, completionTokens: 0, totalTokens: 0 },
};

describeStores('the state of an agent in a session', (store) => {
  const free = () => orchestrate(store()).states;
  const planned = () => orchestrate(store(), { plans: [PLAN] }).states;

  describe('ORC-01 contents', () => {
    it('ORC-01 begins empty, with a version, the time of the access and how long it lives', async () => {
      const sessionId = mintId();
      const before = await free().getOrCreateState(sessionId);

      expect(before).toEqual({ sessionId, ...FRESH, version: anyNumber(), lastAccessed: anyNumber(), ttl: DAY });
      expect(Math.abs(Date.now() - before!.lastAccessed)).toBeLessThan(60_000);
      expect(await free().getState(sessionId)).toEqual({ ...before, lastAccessed: anyNumber() });
    });

    it('ORC-01 keeps recent tools newest first, each once, and ten of them', async () => {
      const sessionId = mintId();
      const states = free();
      for (const tool of ['a', 'b', 'a', 'c']) await states.addUsedTool(sessionId, tool);
      expect((await states.getState(sessionId))?.recentlyUsedTools).toEqual(['c', 'a', 'b']);

      for (let n = 1; n <= 10; n += 1) await states.addUsedTool(sessionId, `t${n}`);
      const { recentlyUsedTools } = (await states.getState(sessionId))!;
      expect(recentlyUsedTools).toEqual([10, 9, 8, 7, 6, 5, 4, 3, 2, 1].map((n) => `t${n}`));
    });

    it('ORC-01 keeps at most `recentTools` recent tools', async () => {
      const sessionId = mintId();
      const { states } = orchestrate(store(), { recentTools: 2 });
      for (const tool of ['a', 'b', 'c']) await states.addUsedTool(sessionId, tool);

      expect((await states.getState(sessionId))?.recentlyUsedTools).toEqual(['c', 'b']);
    });

    it('FIX-29 reads a state alike whatever recentTools the reader has, also when it folds the state', async () => {
      const sessionId = mintId();
      const steps = [
        { name: 'open', isDefault: true },
        { name: 'searched', conditions: [{ type: 'tool_used' as const, value: 'search' }] },
      ];
      const [small, large] = [1, 20].map((recentTools) =>
        orchestrate(store(), { recentTools, plans: [planOf(steps)] }),
      );
      const alike = async (expected: object): Promise<void> => {
        const [one, two] = [await small.states.getState(sessionId), await large.states.getState(sessionId)];
        expect(one).toMatchObject(expected);
        expect(two).toEqual({ ...one, lastAccessed: anyNumber() });
      };

      for (const tool of ['search', 'a']) await large.service.processToolUsage(sessionId, tool);
      await alike({ activeStep: 'searched', recentlyUsedTools: ['a', 'search'] });
      await small.service.admitTool(sessionId, 'b');
      await alike({ recentlyUsedTools: ['b'] });
      for (let n = 0; n < 12; n += 1) await large.states.addUsedTool(sessionId, `tool ${n}`);
      for (let n = 0; n < 24; n += 1) await small.states.addTokenUsage(sessionId, { promptTokens: 1 });
      expect((await small.states.getState(sessionId))!.recentlyUsedTools).toHaveLength(13);
      await alike({});
    });

    it.each([
      ['rules', { type: 'restart', rules: 2 }],
      ['entries', { type: 'rewind' }],
    ])('FIX-29 refuses to read %s of a newer version, and loses nothing', async (_, entry) => {
      const sessionId = mintId();
      const states = free();
      const before = await states.addUsedTool(sessionId, 'search');
      const address = { namespace: 'orchestration-state', scope: 'default', sessionId, key: 'state' };
      await store().state.append(address, { id: mintId(), entries: [entry] });

      expect(await rejection(states.getState(sessionId), UnreadableRecordError, 'NEWER_STATE')).toMatchObject({
        recordId: entry.type,
      });
      const document = (await store().state.get(address))!;
      expect(document.batches.at(-1)).toMatchObject({ entries: [entry] });
      expect(before.recentlyUsedTools).toEqual(['search']);
    });

    it('ORC-01 keeps the last hundred uses in order, with step, time, call and outcome', async () => {
      const sessionId = mintId();
      const states = planned();
      const made = (await states.getOrCreateState(sessionId))!;
      await states.setActiveStep(sessionId, 'help');
      const first = await states.addUsedTool(sessionId, 'page', { callId: 'one' });
      expect(first.toolHistory).toEqual([
        { tool: 'page', step: 'help', at: anyText(), callId: 'one', outcome: 'succeeded' },
      ]);
      for (let n = 1; n < 105; n += 1) await states.addUsedTool(sessionId, `t${n}`, { outcome: 'failed' });

      const { toolHistory, recentlyUsedTools, version } = (await states.getState(sessionId))!;
      expect(toolHistory.map(({ tool }) => tool)).toEqual(Array.from({ length: 100 }, (_, n) => `t${n + 5}`));
      expect(toolHistory.every(({ outcome, step }) => outcome === 'failed' && step === 'help')).toBe(true);
      const times = toolHistory.map(({ at }) => at);
      expect([...times].sort()).toEqual(times);
      expect(recentlyUsedTools).toEqual(['page']);
      expect(version).toBe(made.version + 106);
    });
  });

  it('ORC-02 two agents and two namespaces never see each other', async () => {
    const sessionId = mintId();
    const states = free();
    const other = orchestrate(store(), { storageNamespace: 'other' }).states;
    await states.of('desk').addUsedTool(sessionId, 'search');
    await states.of('mail').getOrCreateState(sessionId);
    await other.of('desk').addUsedTool(sessionId, 'paint');
    const tools = async (of: typeof states, agent: string) =>
      (await of.of(agent).getState(sessionId))?.recentlyUsedTools;

    expect(await tools(states, 'desk')).toEqual(['search']);
    expect(await tools(states, 'mail')).toEqual([]);
    expect(await tools(other, 'desk')).toEqual(['paint']);
    expect(await tools(other, 'mail')).toBeUndefined();
    expect(await states.getState(sessionId)).toBeNull();

    expect(await other.of('desk').removeSession(sessionId)).toBe(true);
    expect(await tools(states, 'desk')).toEqual(['search']);
    expect(await tools(orchestrate(store(), { storageNamespace: 'orchestration-state' }).states, 'desk')).toEqual([
      'search',
    ]);
  });

  it('ORC-02 is of the only agent that has a plan, and of none when several have', async () => {
    const sessionId = mintId();
    await planned().addUsedTool(sessionId, 'search');
    expect(await free().of(PLAN).getState(sessionId)).toMatchObject({ recentlyUsedTools: ['search'] });

    const several = orchestrate(store(), { plans: [PLAN, planOf([], { agent: 'mail' })] }).states;
    await expect(async () => several.getState(sessionId)).rejects.toThrow(/agent is missing: desk, mail/);
    expect(await several.of('desk').getState(sessionId)).toMatchObject({ recentlyUsedTools: ['search'] });
  });

  describe('ORC-03 getState', () => {
    it('ORC-03 returns null without a state, and creates none', async () => {
      const sessionId = mintId();
      expect(await free().getState(sessionId)).toBeNull();
      expect(await free().toAIOrchestrationState(sessionId)).toBeNull();
      expect(await free().updateState(sessionId, {})).toBeNull();
    });

    it('ORC-03 counts as an access and changes nothing else', async () => {
      const sessionId = mintId();
      const states = free();
      const before = await states.addUsedTool(sessionId, 'search');
      await clockGoesOn();
      const read = (await states.getState(sessionId))!;

      expect(read).toEqual({ ...before, lastAccessed: anyNumber() });
      expect(read.lastAccessed).toBeGreaterThan(before.lastAccessed);
    });
  });

  describe('ORC-04 getOrCreateState', () => {
    it('ORC-04 creates one state for many concurrent calls', async () => {
      const sessionId = mintId();
      const managers = Array.from({ length: 20 }, free);
      const made = await Promise.all(managers.map((states) => states.getOrCreateState(sessionId)));

      const { version } = made[0]!;
      expect(made.map((state) => state?.version)).toEqual(managers.map(() => version));
      expect(await free().addUsedTool(sessionId, 'search')).toMatchObject({ version: version + 1 });
    });

    it('ORC-04 leaves an existing state unchanged', async () => {
      const sessionId = mintId();
      const used = await free().addUsedTool(sessionId, 'search');

      expect(await free().getOrCreateState(sessionId)).toEqual({ ...used, lastAccessed: anyNumber() });
    });

    it.each<[string, object]>([
      ['no steps', {}],
      ['an empty list', { steps: [] }],
    ])('ORC-04 stores nothing for a config with %s', async (_, config) => {
      const sessionId = mintId();
      expect(await free().getOrCreateState(sessionId, config)).toBeNull();
      expect(await free().getState(sessionId)).toBeNull();
    });

    it('ORC-04 makes one for a config with steps, and refuses a wrong one', async () => {
      const sessionId = mintId();
      const wrong = { steps: [{ name: '' }] };
      await rejection(free().getOrCreateState(sessionId, wrong), SessionsConfigurationError);
      expect(await free().getState(sessionId)).toBeNull();
      expect(await free().getOrCreateState(sessionId, { steps: PLAN.steps })).toMatchObject({ sequenceIndex: 0 });
    });

    it('ORC-04 creates an id if none is given', async () => {
      const [one, two] = await Promise.all([free().getOrCreateState(), free().getOrCreateState()]);

      expect(one?.sessionId).toMatch(/^[0-9a-f]{32}$/);
      expect(one?.sessionId).not.toBe(two?.sessionId);
      expect(await free().getState(one!.sessionId)).toMatchObject({ sequenceIndex: 0 });
    });
  });

  describe('ORC-05 updateState', () => {
    const use: ToolUse = { tool: 'search', at: '2026-01-01T00:00:00.000Z', outcome: 'succeeded' };

    it('ORC-05 takes back a history that it gave, of turns and of calls', async () => {
      const sessionId = mintId();
      const states = free();
      await states.getOrCreateState(sessionId);
      const toolHistory = [{ ...use, step: 'ask', callId: 'call-1', turnId: mintId() }];
      await states.updateState(sessionId, { toolHistory });
      expect(await states.updateState(sessionId, (state) => ({ toolHistory: state.toolHistory }))).toMatchObject({
        toolHistory,
      });
    });

    it('ORC-05 merges the given fields, increments the version, and keeps the rest', async () => {
      const sessionId = mintId();
      const states = free();
      await states.addUsedTool(sessionId, 'search');
      const before = await states.addTokenUsage(sessionId, { promptTokens: 3 });
      await clockGoesOn();
      const updates = {
        activeStep: 'ask',
        sequenceIndex: 2,
        recentlyUsedTools: ['b', 'a'],
        toolHistory: [use],
        progress: { help: 1 },
      };
      const after = (await states.updateState(sessionId, updates))!;

      expect(after).toEqual({ ...before, ...updates, version: before.version + 1, lastAccessed: anyNumber() });
      expect(after.lastAccessed).toBeGreaterThan(before.lastAccessed);
      const usage = { promptTokens: 1, completionTokens: 2, totalTokens: 4 };
      // The step is left as `setActiveStep` leaves it.
      const unset = { activeStep: undefined, sequenceIndex: undefined, cumulativeTokenUsage: usage };
      const last = await states.updateState(sessionId, unset);
      const { activeStep: _, ...rest } = after;
      expect(last).toEqual({
        ...rest,
        sequenceIndex: 0,
        progress: { help: 1, ask: 2 },
        cumulativeTokenUsage: usage,
        version: after.version + 1,
        lastAccessed: anyNumber(),
      });
      expect(await states.getState(sessionId)).toEqual({ ...last, lastAccessed: anyNumber() });
    });

    it('ORC-05 returns null without a state, and creates none', async () => {
      const sessionId = mintId();
      expect(await free().updateState(sessionId, { sequenceIndex: 1 })).toBeNull();
      const asked: unknown[] = [];
      expect(await free().updateState(sessionId, (state) => void asked.push(state))).toBeNull();
      expect(asked).toEqual([]);
      expect(await free().getState(sessionId)).toBeNull();
    });

    it('ORC-05 neither changes nor retains its arguments', async () => {
      const sessionId = mintId();
      const states = free();
      await states.getOrCreateState(sessionId);
      const updates = { progress: { ask: 1 }, recentlyUsedTools: ['a'], toolHistory: [{ ...use }] };
      const copy = structuredClone(updates);
      const after = await states.updateState(sessionId, updates);
      expect(updates).toEqual(copy);
      updates.progress.ask = 2;
      updates.recentlyUsedTools.push('b');
      updates.toolHistory[0].tool = 'other';

      expect(await states.getState(sessionId)).toEqual({ ...after, ...copy, lastAccessed: anyNumber() });
    });

    it('ORC-05 loses none of many concurrent merges of different fields', async () => {
      const sessionId = mintId();
      await free().getOrCreateState(sessionId);
      await Promise.all([
        free().updateState(sessionId, { sequenceIndex: 7 }),
        free().updateState(sessionId, {
          cumulativeTokenUsage: { promptTokens: 1, completionTokens: 2, totalTokens: 3 },
        }),
        free().updateState(sessionId, { progress: { help: 1 } }),
        free().addUsedTool(sessionId, 'search'),
      ]);

      expect(await free().getState(sessionId)).toMatchObject({
        sequenceIndex: 7,
        cumulativeTokenUsage: { totalTokens: 3 },
        progress: { help: 1 },
        recentlyUsedTools: ['search'],
      });
    });

    it('ORC-05 retries the function until no other writer conflicts', async () => {
      const sessionId = mintId();
      await free().getOrCreateState(sessionId);
      const increase = ({ sequenceIndex }: OrchestrationState) => ({ sequenceIndex: sequenceIndex + 1 });
      const writers = Array.from({ length: 12 }, free);
      const results = await Promise.all(writers.map((states) => states.updateState(sessionId, increase)));

      expect(results.map((state) => state?.sequenceIndex).sort((a, b) => a! - b!)).toEqual(
        writers.map((_, n) => n + 1),
      );
      expect(await free().getState(sessionId)).toMatchObject({ sequenceIndex: 12 });
    });

    it('ORC-05 a retried function sees writes that happened during its previous run', async () => {
      const sessionId = mintId();
      const states = free();
      await states.getOrCreateState(sessionId);
      const seen: number[] = [];
      const after = await states.updateState(sessionId, async ({ sequenceIndex }) => {
        seen.push(sequenceIndex);
        if (seen.length === 1) await free().updateState(sessionId, { sequenceIndex: 10 });
        return { sequenceIndex: sequenceIndex + 1 };
      });

      expect(seen).toEqual([0, 10]);
      expect(after).toMatchObject({ sequenceIndex: 11 });
    });

    it('ORC-05 a function may return nothing, and changes to its argument have no effect', async () => {
      const sessionId = mintId();
      const states = free();
      const before = await states.addUsedTool(sessionId, 'search');
      const after = await states.updateState(sessionId, (state) => {
        (state.recentlyUsedTools as string[]).push('forged');
        (state as { sequenceIndex: number }).sequenceIndex = 9;
        return undefined;
      });

      expect(after).toEqual({ ...before, lastAccessed: anyNumber() });
      expect(await states.getState(sessionId)).toEqual({ ...before, lastAccessed: anyNumber() });
    });

    it('ORC-05 leaves the state unchanged if the function throws or its result is rejected', async () => {
      const sessionId = mintId();
      const states = planned();
      const before = await states.addUsedTool(sessionId, 'search');
      const problem = new Error('No.');
      await expect(states.updateState(sessionId, () => Promise.reject(problem))).rejects.toBe(problem);
      await rejection(
        states.updateState(sessionId, () => ({ sequenceIndex: -1 })),
        InvalidInputError,
      );
      await rejection(
        states.updateState(sessionId, () => ({ activeStep: 'nowhere' })),
        InvalidInputError,
        'UNKNOWN_STEP',
      );

      expect(await states.getState(sessionId)).toEqual({ ...before, lastAccessed: anyNumber() });
    });
  });

  describe('ORC-06 setActiveStep', () => {
    it('ORC-06 enters a step at 0, or at its stored index', async () => {
      const sessionId = mintId();
      const states = planned();
      await states.getOrCreateState(sessionId);
      await states.setActiveStep(sessionId, 'ask');
      await states.advanceSequence(sessionId);
      await states.advanceSequence(sessionId);
      expect(await states.setActiveStep(sessionId, 'help')).toMatchObject({
        activeStep: 'help',
        sequenceIndex: 0,
        progress: { ask: 2 },
      });
      await states.advanceSequence(sessionId);
      expect(await states.setActiveStep(sessionId, 'help')).toMatchObject({ activeStep: 'help', sequenceIndex: 1 });

      expect(await states.setActiveStep(sessionId, 'ask')).toMatchObject({
        activeStep: 'ask',
        sequenceIndex: 2,
        progress: { help: 1 },
      });
      const none = await states.setActiveStep(sessionId, undefined);
      expect(none).not.toHaveProperty('activeStep');
      expect(none).toMatchObject({ sequenceIndex: 0, progress: { ask: 2, help: 1 } });
    });

    it('ORC-06 keeps the progress of a default step that was not entered by name', async () => {
      const sessionId = mintId();
      const { states, sequencer } = orchestrate(store(), { plans: [PLAN] });
      await sequencer.processTool(PLAN.steps[0], sessionId, 'search');
      await states.setActiveStep(sessionId, 'help');

      expect(await states.setActiveStep(sessionId, 'ask')).toMatchObject({ sequenceIndex: 1, progress: { help: 0 } });
    });

    it('ORC-06 an index that was counted while no step was active is the default step’s', async () => {
      const sessionId = mintId();
      const states = planned();
      await states.getOrCreateState(sessionId);
      await states.updateState(sessionId, { sequenceIndex: 2 });
      expect(await states.setActiveStep(sessionId, undefined)).toMatchObject({ sequenceIndex: 2 });
      await states.setActiveStep(sessionId, 'help');

      expect(await states.setActiveStep(sessionId, 'ask')).toMatchObject({ sequenceIndex: 2, progress: { help: 0 } });
    });

    it('ORC-06 keeps the position of the default step that was left for no step', async () => {
      const sessionId = mintId();
      const { states, service, sequencer } = orchestrate(store(), { plans: [PLAN] });
      for (let n = 0; n < 2; n += 1) await service.processToolUsage(sessionId, 'search');
      expect(await states.setActiveStep(sessionId, undefined)).toMatchObject({ progress: { ask: 2 } });

      expect(await service.getAvailableTools(sessionId, ['search', 'book'])).toEqual(['book']);
      expect(await states.toAIOrchestrationState(sessionId)).toMatchObject({ activeStep: 'ask', sequenceIndex: 2 });
      expect(await sequencer.getCurrentSequenceTool(PLAN.steps[0], sessionId)).toBe('book');
      expect(await sequencer.processTool(PLAN.steps[0], sessionId, 'book')).toBe(true);
      expect(await states.getState(sessionId)).toMatchObject({ sequenceIndex: 0, progress: { ask: 3 } });
      expect(await service.processToolUsage(sessionId, 'any')).toMatchObject({ activeStep: 'ask', sequenceIndex: 3 });
    });

    it('ORC-06 enters the step of an update at the position of the same update', async () => {
      const sessionId = mintId();
      const states = planned();
      await states.getOrCreateState(sessionId);
      expect(await states.updateState(sessionId, { activeStep: 'help', progress: { help: 2 } })).toMatchObject({
        activeStep: 'help',
        sequenceIndex: 2,
        progress: { help: 2 },
      });
      const both = await states.updateState(sessionId, { activeStep: 'ask', progress: { ask: 2 }, sequenceIndex: 1 });
      expect(both).toMatchObject({ activeStep: 'ask', sequenceIndex: 1, progress: { ask: 2 } });
    });

    it('ORC-06 refuses a step that the plan does not have, and takes any without a plan', async () => {
      const sessionId = mintId();
      const before = await planned().addUsedTool(sessionId, 'search');
      const refused = await rejection(planned().setActiveStep(sessionId, 'nowhere'), InvalidInputError, 'UNKNOWN_STEP');
      expect(refused.message).toBe('step must be a step of the plan: ask, help, free. Received: "nowhere".');
      await rejection(planned().updateState(sessionId, { activeStep: 'nowhere' }), InvalidInputError, 'UNKNOWN_STEP');
      expect(await planned().getState(sessionId)).toEqual({ ...before, lastAccessed: anyNumber() });

      const other = mintId();
      await free().getOrCreateState(other);
      expect(await free().setActiveStep(other, 'nowhere')).toMatchObject({ activeStep: 'nowhere' });
    });

    it('ORC-06 returns null without a state', async () => {
      const sessionId = mintId();
      expect(await planned().setActiveStep(sessionId, 'ask')).toBeNull();
      expect(await planned().getState(sessionId)).toBeNull();
    });

    it('ORC-06 accepts step names that are names of Object.prototype', async () => {
      const sessionId = mintId();
      const states = free();
      await states.getOrCreateState(sessionId);
      for (const step of ['toString', 'valueOf', 'hasOwnProperty']) {
        await states.setActiveStep(sessionId, step);
        expect(await states.advanceSequence(sessionId)).toMatchObject({ activeStep: step, sequenceIndex: 1 });
      }
      expect(await states.setActiveStep(sessionId, 'toString')).toMatchObject({ sequenceIndex: 1 });
    });
  });

  describe('ORC-07 addUsedTool', () => {
    it('ORC-07 counts a call once, and calls without an id each', async () => {
      const sessionId = mintId();
      const states = free();
      const first = await states.addUsedTool(sessionId, 'search', { callId: 'one' });
      await states.addUsedTool(sessionId, 'book');
      const again = await states.addUsedTool(sessionId, 'search', { callId: 'one' });
      await states.addUsedTool(sessionId, 'search', { callId: 'two' });
      const { toolHistory } = await states.addUsedTool(sessionId, 'book');

      expect(again.toolHistory.map(({ tool }) => tool)).toEqual(['search', 'book']);
      expect(again.recentlyUsedTools).toEqual(['book', 'search']);
      expect(again.toolHistory[0]).toEqual(first.toolHistory[0]);
      expect(toolHistory.map(({ tool }) => tool)).toEqual(['search', 'book', 'search', 'book']);
    });

    it('ORC-07 counts a call once that many report at once', async () => {
      const sessionId = mintId();
      await Promise.all(Array.from({ length: 20 }, () => free().addUsedTool(sessionId, 'search', { callId: 'one' })));

      expect((await free().getState(sessionId))?.toolHistory).toHaveLength(1);
    });

    it('ORC-07 makes the state, and moves neither step nor sequence', async () => {
      const sessionId = mintId();
      expect(await planned().addUsedTool(sessionId, 'search')).toMatchObject({ sequenceIndex: 0 });
      expect(await planned().getState(sessionId)).not.toHaveProperty('activeStep');
    });

    it.each<[string, string, object, RegExp]>([
      ['no name', '', {}, /^tool /],
      ['an unknown outcome', 'search', { outcome: 'lost' }, /outcome must be succeeded or failed/],
      ['an empty call id', 'search', { callId: '' }, /callId/],
      ['an unknown option', 'search', { call: 'x' }, /call/],
    ])('ORC-07 refuses %s', async (_, tool, options, message) => {
      const sessionId = mintId();
      const refused = await rejection(free().addUsedTool(sessionId, tool, options), InvalidInputError);
      expect(refused.message).toMatch(message);
      expect(await free().getState(sessionId)).toBeNull();
    });
  });

  describe('ORC-08 advanceSequence', () => {
    it('ORC-08 adds one, from 0, without a limit if the step is unknown', async () => {
      const sessionId = mintId();
      await free().getOrCreateState(sessionId);
      await Promise.all(Array.from({ length: 50 }, () => free().advanceSequence(sessionId)));
      expect(await free().getState(sessionId)).toMatchObject({ sequenceIndex: 50 });
    });

    it('ORC-08 stops at the end of the step’s sequence', async () => {
      const sessionId = mintId();
      await planned().getOrCreateState(sessionId);
      const results = await Promise.all(Array.from({ length: 50 }, () => planned().advanceSequence(sessionId)));
      expect(Math.max(...results.map((state) => state!.sequenceIndex))).toBe(3);
      expect(await planned().getState(sessionId)).toMatchObject({ sequenceIndex: 3, activeStep: 'ask' });

      await planned().setActiveStep(sessionId, 'free');
      expect(await planned().advanceSequence(sessionId)).toMatchObject({ sequenceIndex: 0 });
    });

    it('ORC-08 returns null without a state', async () => {
      const sessionId = mintId();
      expect(await free().advanceSequence(sessionId)).toBeNull();
      expect(await planned().advanceSequence(sessionId)).toBeNull();
      expect(await free().getState(sessionId)).toBeNull();
    });
  });

  describe('ORC-09 reset and removal', () => {
    it('ORC-09 restores the defaults and returns them, on every call', async () => {
      const sessionId = mintId();
      const states = planned();
      await states.addUsedTool(sessionId, 'search', { callId: 'one' });
      await states.setActiveStep(sessionId, 'help');
      await states.addTokenUsage(sessionId, { promptTokens: 1 });
      const reset = await states.resetState(sessionId);

      expect(reset).toEqual({ sessionId, ...FRESH, version: anyNumber(), lastAccessed: anyNumber(), ttl: DAY });
      expect(await states.getState(sessionId)).toEqual({ ...reset, lastAccessed: anyNumber() });
      expect(await states.resetState(sessionId)).toMatchObject({ ...FRESH, version: reset.version + 1 });
      // A reset removes everything, including the call ids.
      expect((await states.addUsedTool(sessionId, 'search', { callId: 'one' })).toolHistory).toHaveLength(1);
      expect(await states.resetState(mintId())).toMatchObject(FRESH);
    });

    it.each(['cleanupSession', 'removeSession'] as const)('ORC-09 %s deletes, once', async (method) => {
      const sessionId = mintId();
      const states = free();
      await states.addUsedTool(sessionId, 'search');

      expect(await states[method](sessionId)).toBe(true);
      expect(await states.getState(sessionId)).toBeNull();
      expect(await states[method](sessionId)).toBe(false);
      expect(await states.getOrCreateState(sessionId)).toMatchObject(FRESH);
    });
  });

  describe('ORC-10 toAIOrchestrationState', () => {
    it('ORC-10 says what a prompt may see, and nothing else', async () => {
      const sessionId = mintId();
      const states = planned();
      await states.addUsedTool(sessionId, 'search', { callId: 'secret' });
      expect(await states.toAIOrchestrationState(sessionId)).toEqual({
        activeStep: 'ask',
        stepDescription: 'Find out.',
        recentlyUsedTools: ['search'],
        sequenceIndex: 0,
        allowedTools: ['search'],
      });

      await states.setActiveStep(sessionId, 'help');
      await states.advanceSequence(sessionId);
      expect(await states.toAIOrchestrationState(sessionId)).toMatchObject({
        sequenceIndex: 1,
        allowedTools: ['call'],
      });
      await states.advanceSequence(sessionId);
      expect(await states.toAIOrchestrationState(sessionId)).toEqual({
        activeStep: 'help',
        stepDescription: 'Call somebody.',
        recentlyUsedTools: ['search'],
        sequenceIndex: 2,
        allowedTools: ['*'],
        deniedTools: ['book'],
      });
      await states.setActiveStep(sessionId, 'free');
      expect(await states.toAIOrchestrationState(sessionId)).toEqual({
        activeStep: 'free',
        recentlyUsedTools: ['search'],
        sequenceIndex: 0,
      });
    });
  });

  describe('ORC-11 token usage', () => {
    it('ORC-11 adds up concurrent additions', async () => {
      const sessionId = mintId();
      const usage = { promptTokens: 2, completionTokens: 1, totalTokens: 4 };
      await Promise.all(Array.from({ length: 30 }, () => free().addTokenUsage(sessionId, usage)));

      expect((await free().getState(sessionId))?.cumulativeTokenUsage).toEqual({
        promptTokens: 60,
        completionTokens: 30,
        totalTokens: 120,
      });
    });

    it.each<[string, object, number[]]>([
      ['no total', { promptTokens: 2, completionTokens: 3 }, [2, 3, 5]],
      ['only a total', { totalTokens: 7 }, [0, 0, 7]],
      ['not finite numbers', { promptTokens: NaN, completionTokens: Infinity, totalTokens: -Infinity }, [0, 0, 0]],
      ['one that is not finite', { promptTokens: NaN, completionTokens: 3 }, [0, 3, 3]],
      ['no numbers', { promptTokens: '5', completionTokens: null, totalTokens: undefined }, [0, 0, 0]],
    ])('ORC-11 takes %s', async (_, usage, [promptTokens, completionTokens, totalTokens]) => {
      const { cumulativeTokenUsage } = await free().addTokenUsage(mintId(), usage);
      expect(cumulativeTokenUsage).toEqual({ promptTokens, completionTokens, totalTokens });
    });

    it.each<[string, unknown]>([
      ['none of the known fields (FIX-25)', {}],
      ['a negative number', { promptTokens: -1 }],
      ['a negative total', { promptTokens: 1, totalTokens: -5 }],
      ['no object', 7],
      ['a list', [1]],
    ])('ORC-11 refuses %s, and stores nothing', async (_, usage) => {
      const sessionId = mintId();
      await expect(async () => free().addTokenUsage(sessionId, usage as object)).rejects.toThrow(InvalidInputError);
      expect(await free().getState(sessionId)).toBeNull();
    });
  });

  it('NST-17 rejects invalid ids', async () => {
    for (const sessionId of ['', ' ', 'a b', `a${'b'.repeat(200)}`, '../x', null as unknown as string]) {
      await expect(async () => free().getState(sessionId)).rejects.toThrow(InvalidInputError);
      await expect(async () => free().addUsedTool(sessionId, 'search')).rejects.toThrow(InvalidInputError);
    }
  });
});
