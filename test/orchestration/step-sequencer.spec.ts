import { InvalidInputError, SessionsConfigurationError } from 'nestjs-agent-sessions';
import { mintId } from '../../lib/common/ids.js';
import { describeStores, noteWarnings, orchestrate } from '../support/orchestration.js';
import { inProduction } from '../support/production.js';

inProduction();

const STEP = { name: 'ask', sequence: ['search', 'search', 'book'] };
const PLAIN = { name: 'plain' };
const GROUPS = { name: 'groups', sequence: [{ optional: 'greet' }, { anyOf: ['search', 'browse'] }, 'book'] };
const RESTARTING = { name: 'again', sequence: ['search', 'book'], resetSequenceOn: ['search', 'cancel'] };

describeStores('a step sequencer', (store) => {
  let warnings: string[];

  beforeEach(() => {
    warnings = noteWarnings();
  });

  const of = () => orchestrate(store());

  it('ORC-20 a session without a state is at the start, and asking makes none', async () => {
    const sessionId = mintId();
    const { sequencer, states } = of();

    expect(await sequencer.hasActiveSequence(STEP, sessionId)).toBe(true);
    expect(await sequencer.getCurrentSequenceTool(STEP, sessionId)).toBe('search');
    expect(await sequencer.filterToolsBySequence(STEP, sessionId, ['book', 'search'])).toEqual(['search']);
    expect(await states.getState(sessionId)).toBeNull();
  });

  it('ORC-20 has no active sequence for a step without one', async () => {
    const sessionId = mintId();
    const { sequencer, states } = of();
    await states.getOrCreateState(sessionId);

    expect(await sequencer.hasActiveSequence(PLAIN, sessionId)).toBe(false);
    expect(await sequencer.getCurrentSequenceTool(PLAIN, sessionId)).toBeNull();
    expect(await sequencer.getCurrentSequenceTools(PLAIN, sessionId)).toEqual([]);
    expect(await sequencer.filterToolsBySequence(PLAIN, sessionId, ['b', 'a'])).toEqual(['b', 'a']);
    expect(await sequencer.processTool(PLAIN, sessionId, 'search')).toBe(true);
    expect(await states.getState(sessionId)).toMatchObject({ recentlyUsedTools: ['search'], sequenceIndex: 0 });
  });

  it.each([3, 4, 1000])('ORC-20 an index of %d is past the end', async (sequenceIndex) => {
    const sessionId = mintId();
    const { sequencer, states } = of();
    await states.getOrCreateState(sessionId);
    await states.updateState(sessionId, { sequenceIndex });

    expect(await sequencer.hasActiveSequence(STEP, sessionId)).toBe(false);
    expect(await sequencer.getCurrentSequenceTool(STEP, sessionId)).toBeNull();
    expect(await sequencer.filterToolsBySequence(STEP, sessionId, ['b', 'a'])).toEqual(['b', 'a']);
    expect(await sequencer.processTool(STEP, sessionId, 'any')).toBe(true);
    expect(await states.getState(sessionId)).toMatchObject({ sequenceIndex });
    expect(warnings).toEqual([]);
  });

  it('ORC-21 ORC-23 advances on each match, by position, and records every use', async () => {
    const sessionId = mintId();
    const { sequencer, states } = of();
    const moves: [string, boolean, number][] = [
      ['book', false, 0],
      ['search', true, 1],
      ['book', false, 1],
      ['search', true, 2],
      ['search', false, 2],
      ['book', true, 3],
      ['search', true, 3],
    ];
    for (const [tool, matched, sequenceIndex] of moves) {
      expect(await sequencer.processTool(STEP, sessionId, tool)).toBe(matched);
      expect(await states.getState(sessionId)).toMatchObject({ sequenceIndex });
    }

    const { toolHistory } = (await states.getState(sessionId))!;
    expect(toolHistory.map(({ tool }) => tool)).toEqual(moves.map(([tool]) => tool));
    expect(warnings).toHaveLength(3);
    expect(warnings[0]).toMatch(/used book in step ask\. Allowed: search\./);
    expect(warnings[0]).not.toContain(sessionId);
  });

  it('ORC-21 a call that is reported twice moves once', async () => {
    const sessionId = mintId();
    const { sequencer, states } = of();
    await Promise.all([1, 2, 3].map(() => of().sequencer.processTool(STEP, sessionId, 'search', { callId: 'one' })));

    expect(await states.getState(sessionId)).toMatchObject({ sequenceIndex: 1 });
    expect(await sequencer.processTool(STEP, sessionId, 'search', { callId: 'two' })).toBe(true);
  });

  it('ORC-21 gives a repeated call the answer of the first one, also in a folded state', async () => {
    const sessionId = mintId();
    const { sequencer, states } = of();
    const report = (tool: string, callId: string) => sequencer.processTool(STEP, sessionId, tool, { callId });
    expect(await report('book', 'early')).toBe(false);
    for (const callId of ['one', 'two']) expect(await report('search', callId)).toBe(true);

    for (const others of [0, 40]) {
      for (let n = 0; n < others; n += 1) await states.addTokenUsage(sessionId, { promptTokens: 1 });
      expect(await report('book', 'early')).toBe(false);
      expect(await report('search', 'one')).toBe(true);
    }
    await states.updateState(sessionId, ({ toolHistory }) => ({ toolHistory }));
    expect(await report('book', 'early')).toBe(false);
    expect(await states.getState(sessionId)).toMatchObject({ sequenceIndex: 2 });
    expect(warnings).toHaveLength(1);
    expect(await report('book', 'late')).toBe(true);
  });

  it('ORC-21 returns false for a failed use of a tool that was not next', async () => {
    const sessionId = mintId();
    const { sequencer, states } = of();
    const report = (outcome: 'failed' | 'succeeded') =>
      sequencer.processTool(STEP, sessionId, 'book', { callId: 'one', outcome });
    expect(await report('failed')).toBe(false);
    expect(await report('failed')).toBe(false);
    expect(warnings).toEqual([expect.stringMatching(/used book in step ask\. Allowed: search\./)]);
    for (let n = 0; n < 2; n += 1) await sequencer.processTool(STEP, sessionId, 'search');
    expect(await report('succeeded')).toBe(true);
    expect(await report('failed')).toBe(false);
    expect(await states.getState(sessionId)).toMatchObject({ sequenceIndex: 3 });
  });

  it('ORC-21 advances once per matching position for concurrent uses of the next tool', async () => {
    const sessionId = mintId();
    const matched = await Promise.all(
      Array.from({ length: 10 }, () => of().sequencer.processTool(STEP, sessionId, 'search')),
    );

    expect(matched.filter(Boolean)).toHaveLength(2);
    const state = (await of().states.getState(sessionId))!;
    expect(state.sequenceIndex).toBe(2);
    expect(state.toolHistory).toHaveLength(10);
  });

  it('ORC-21 records a failed use without an advance', async () => {
    const sessionId = mintId();
    const { sequencer, states } = of();
    expect(await sequencer.processTool(STEP, sessionId, 'search', { outcome: 'failed' })).toBe(true);

    expect(await states.getState(sessionId)).toMatchObject({
      sequenceIndex: 0,
      recentlyUsedTools: [],
      toolHistory: [{ tool: 'search', outcome: 'failed' }],
    });
  });

  it('ORC-22 leaves the current tool, and none with a warning when it is not there', async () => {
    const sessionId = mintId();
    const { sequencer } = of();
    expect(await sequencer.filterToolsBySequence(STEP, sessionId, ['book', 'search', 'search'])).toEqual([
      'search',
      'search',
    ]);
    expect(warnings).toEqual([]);
    expect(await sequencer.filterToolsBySequence(STEP, sessionId, ['book'])).toEqual([]);
    expect(warnings).toEqual([expect.stringMatching(/Step ask requires search next, which is not available/)]);
  });

  it('ORC-29 accepts any tool of a group, and skips optional ones', async () => {
    const { sequencer } = of();
    const [first, second] = [mintId(), mintId()];
    expect(await sequencer.getCurrentSequenceTools(GROUPS, first)).toEqual(['greet', 'search', 'browse']);
    expect(await sequencer.getCurrentSequenceTool(GROUPS, first)).toBe('greet');
    expect(await sequencer.filterToolsBySequence(GROUPS, first, ['book', 'browse', 'greet'])).toEqual([
      'browse',
      'greet',
    ]);
    for (const tool of ['greet', 'browse', 'book']) expect(await sequencer.processTool(GROUPS, first, tool)).toBe(true);
    expect(await sequencer.hasActiveSequence(GROUPS, first)).toBe(false);

    expect(await sequencer.processTool(GROUPS, second, 'search')).toBe(true);
    expect(await sequencer.getCurrentSequenceTools(GROUPS, second)).toEqual(['book']);
    expect(await sequencer.processTool(GROUPS, second, 'greet')).toBe(false);
  });

  it('ORC-29 starts over with the tools that do so, and counts the first when it is one', async () => {
    const sessionId = mintId();
    const { sequencer, states } = of();
    const at = async () => (await states.getState(sessionId))?.sequenceIndex;
    await sequencer.processTool(RESTARTING, sessionId, 'search');
    expect(await sequencer.processTool(RESTARTING, sessionId, 'search')).toBe(true);
    expect(await at()).toBe(1);
    expect(await sequencer.processTool(RESTARTING, sessionId, 'cancel')).toBe(true);
    expect(await at()).toBe(0);
    for (const tool of ['search', 'book']) await sequencer.processTool(RESTARTING, sessionId, tool);
    expect(await at()).toBe(2);
    await sequencer.processTool(RESTARTING, sessionId, 'search');
    expect(await at()).toBe(1);
    expect(await sequencer.filterToolsBySequence(RESTARTING, sessionId, ['cancel', 'x', 'book'])).toEqual([
      'cancel',
      'book',
    ]);
    expect(warnings).toEqual([]);
  });

  it('ORC-20 keeps separate indexes for another step and the active one', async () => {
    const sessionId = mintId();
    const { sequencer, states } = of();
    await states.getOrCreateState(sessionId);
    await states.setActiveStep(sessionId, 'other');
    await states.advanceSequence(sessionId);
    await sequencer.processTool(STEP, sessionId, 'search');
    await sequencer.processTool(STEP, sessionId, 'search');

    expect(await sequencer.getCurrentSequenceTool(STEP, sessionId)).toBe('book');
    expect(await states.getState(sessionId)).toMatchObject({ sequenceIndex: 1, progress: { ask: 2 } });
    expect(await states.setActiveStep(sessionId, 'ask')).toMatchObject({ sequenceIndex: 2 });
  });

  it('FIX-27 does not change the active step when it processes a tool', async () => {
    const sessionId = mintId();
    const { sequencer, states } = of();
    await sequencer.processTool(STEP, sessionId, 'search');
    expect(await states.getState(sessionId)).toMatchObject({ sequenceIndex: 1 });
    expect(await states.getState(sessionId)).not.toHaveProperty('activeStep');

    await states.setActiveStep(sessionId, 'other');
    await sequencer.processTool(STEP, sessionId, 'search');
    expect(await states.getState(sessionId)).toMatchObject({ activeStep: 'other', progress: { ask: 1 } });
  });

  it('FIX-27 advances the sequence of a step by hand, up to its end', async () => {
    const sessionId = mintId();
    const { sequencer, states } = of();
    expect(await sequencer.advanceSequence(STEP, sessionId)).toBe(false);
    await states.getOrCreateState(sessionId);
    expect(await sequencer.advanceSequence(PLAIN, sessionId)).toBe(false);

    for (const index of [1, 2, 3]) {
      expect(await sequencer.advanceSequence(STEP, sessionId)).toBe(true);
      expect(await states.getState(sessionId)).toMatchObject({ sequenceIndex: index, toolHistory: [] });
    }
    expect(await sequencer.advanceSequence(STEP, sessionId)).toBe(false);
    expect(await sequencer.hasActiveSequence(STEP, sessionId)).toBe(false);
  });

  it('FIX-27 rejects a wrong session id, and throws for an unknown agent', async () => {
    const { states, service } = of();
    const removed = states.removeSession('');
    await expect(removed).rejects.toThrow(InvalidInputError);
    expect(() => service.of('unknown')).toThrow(SessionsConfigurationError);
  });

  it('ORC-02 works on the agent given to of()', async () => {
    const sessionId = mintId();
    const { sequencer } = of();
    await sequencer.of('desk').processTool(STEP, sessionId, 'search');
    await sequencer.of('desk').processTool(STEP, sessionId, 'search');

    expect(await sequencer.of('desk').getCurrentSequenceTool(STEP, sessionId)).toBe('book');
    expect(await sequencer.of('mail').getCurrentSequenceTool(STEP, sessionId)).toBe('search');
  });

  it('ORC-20 rejects an invalid step', async () => {
    const { sequencer, states } = of();
    const sessionId = mintId();
    for (const step of [{ name: '' }, { name: 'a', sequence: [] }, { name: 'a', sequence: ['b', { optional: 'c' }] }]) {
      await expect(sequencer.hasActiveSequence(step, sessionId)).rejects.toThrow(InvalidInputError);
      await expect(sequencer.processTool(step, sessionId, 'b')).rejects.toThrow(InvalidInputError);
    }
    await expect(sequencer.processTool(STEP, sessionId, '')).rejects.toThrow(InvalidInputError);
    expect(await states.getState(sessionId)).toBeNull();
  });
});
