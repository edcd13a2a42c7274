import fc from 'fast-check';
import { type JsonValue, deepFreeze } from '../../lib/common/json.js';
import { defineStepPlan, type OrchestrationStep, type StepPlan } from '../../lib/index.js';
import { applyEntry, type OrchestrationRules } from '../../lib/orchestration/apply-entry.js';
import { foldOf, progressOf } from '../../lib/orchestration/orchestration-document.js';
import { type OrchestrationEntry } from '../../lib/orchestration/orchestration-entry.js';
import { NO_PROGRESS, type OrchestrationProgress } from '../../lib/orchestration/orchestration-state.js';
import { messageFacts } from '../../lib/orchestration/step-conditions.js';
import { foldedBy } from '../../lib/state/module-document.js';
import { type StateDocument } from '../../lib/ledger/state.store.js';
import { randomPlan, randomUse } from './random-plans.js';

const AT = '2026-11-21T08:00:00.000Z';

describe('a sequence', () => {
  it('ORC-23 counts repeated tools by position', () => {
    const desk = at({ name: 'desk', isDefault: true, sequence: ['search', 'search', 'book'] });
    expect(desk.uses('search').sequenceIndex).toBe(1);
    expect(desk.uses('search', 'book').sequenceIndex).toBe(1);
    expect(desk.uses('search', 'book', 'search', 'book').sequenceIndex).toBe(3);
  });

  it('ORC-29 takes any tool of a group, and passes over optional ones', () => {
    const desk = at({
      name: 'desk',
      isDefault: true,
      sequence: [{ anyOf: ['mail', 'call'] }, { optional: 'note' }, { optional: 'tag' }, 'close'],
    });
    expect(desk.uses('call').sequenceIndex).toBe(1);
    expect(desk.uses('call', 'close').sequenceIndex).toBe(4);
    expect(desk.uses('mail', 'tag', 'close').sequenceIndex).toBe(4);
    expect(desk.uses('mail', 'tag', 'note').sequenceIndex).toBe(3);
  });

  it('ORC-29 continues with the next step when it is complete, and restarts when the step is entered again', () => {
    const desk = at(
      { name: 'ask', isDefault: true, sequence: ['who', 'what'], onComplete: 'act' },
      { name: 'act', sequence: ['do'], onComplete: 'ask' },
    );
    expect(desk.uses('who', 'what')).toMatchObject({ activeStep: 'act', sequenceIndex: 0 });
    expect(desk.uses('who', 'what', 'do')).toMatchObject({ activeStep: 'ask', sequenceIndex: 0 });
    expect(desk.uses('who', 'what', 'do', 'who')).toMatchObject({ activeStep: 'ask', sequenceIndex: 1 });
  });

  it('ORC-29 continues with the step of onComplete, whatever conditions hold', () => {
    const desk = at(
      { name: 'ask', isDefault: true, sequence: ['who'], onComplete: 'act' },
      { name: 'other', conditions: [{ type: 'tool_used', value: 'who' }] },
      { name: 'act' },
    );
    expect(desk.uses('who').activeStep).toBe('act');
    expect(desk.uses('who', 'x').activeStep).toBe('other');
  });

  it('ORC-29 starts over with a tool of resetSequenceOn, which may be its first one', () => {
    const desk = at({ name: 'desk', isDefault: true, sequence: ['a', 'b', 'c'], resetSequenceOn: ['cancel', 'a'] });
    expect(desk.uses('a', 'b', 'cancel').sequenceIndex).toBe(0);
    expect(desk.uses('a', 'b', 'a').sequenceIndex).toBe(1);
    expect(desk.uses('a', 'b', 'c', 'cancel').sequenceIndex).toBe(0);
  });

  it('ORC-08 ORC-29 continues with the next step when it is advanced by hand, too', () => {
    const plan = defineStepPlan({
      agent: 'test',
      steps: [{ name: 'ask', isDefault: true, sequence: ['who'], onComplete: 'act' }, { name: 'act' }],
    });
    const { progress, effects } = applyEntry(NO_PROGRESS, { type: 'advance', plan: plan.signature }, AT, rulesOf(plan));
    expect(progress).toMatchObject({ activeStep: 'act', sequenceIndex: 0, progress: { ask: 0 } });
    expect(effects.map(({ type }) => type)).toEqual(['sequence-advanced', 'sequence-completed', 'step-changed']);
  });

  it('ORC-06 is kept when its step becomes inactive', () => {
    const desk = at(
      { name: 'one', isDefault: true, sequence: ['a', 'b'] },
      { name: 'two', conditions: [{ type: 'last_tool', value: 'x' }] },
      { name: 'back', conditions: [{ type: 'last_tool', value: 'y' }] },
    );
    const left = desk.uses('a', 'x');
    expect(left).toMatchObject({ activeStep: 'two', sequenceIndex: 0, progress: { one: 1 } });
    expect(applied(left, { type: 'step', step: 'one' })).toMatchObject({ activeStep: 'one', sequenceIndex: 1 });
    expect(applied(left, { type: 'step', step: null })).not.toHaveProperty('activeStep');
  });
});

describe('a step of which only the sequence is known', () => {
  const use = (tool: string, name: string): OrchestrationEntry => ({
    type: 'tool',
    tool,
    outcome: 'succeeded',
    sequenceOf: { name, sequence: ['a', 'b'] },
  });

  it('FIX-27 does not become the active one, and has its own index beside an active one', () => {
    const first = applied(NO_PROGRESS, use('a', 'one'));
    expect(first).toMatchObject({ sequenceIndex: 1, progress: {} });
    expect(first).not.toHaveProperty('activeStep');
    const second = applied({ ...first, activeStep: 'one' }, use('a', 'two'));
    expect(second).toMatchObject({ activeStep: 'one', sequenceIndex: 1, progress: { two: 1 } });
    expect(applied(second, { type: 'step', step: 'two' })).toMatchObject({ sequenceIndex: 1, progress: { one: 1 } });
  });

  it('ORC-08 takes over an index that was counted without a step', () => {
    const counted = applied(applied(NO_PROGRESS, { type: 'advance' }), use('b', 'one'));
    expect(counted).toMatchObject({ sequenceIndex: 2 });
  });
});

describe('updates', () => {
  it('ORC-05 enter the named step at its stored index, unless they set the index', () => {
    const one = { ...NO_PROGRESS, activeStep: 'one', sequenceIndex: 2, progress: { two: 1 } };
    const merge = (updates: Partial<OrchestrationProgress>, unset: string[] = []): OrchestrationProgress =>
      applied(one, { type: 'merge', updates, unset });
    expect(merge({ activeStep: 'two' })).toMatchObject({ activeStep: 'two', sequenceIndex: 1, progress: { one: 2 } });
    expect(merge({ activeStep: 'two', sequenceIndex: 5 })).toMatchObject({ activeStep: 'two', sequenceIndex: 5 });
    expect(merge({ sequenceIndex: 0 })).toMatchObject({ activeStep: 'one', sequenceIndex: 0 });
    expect(merge({}, ['activeStep'])).not.toHaveProperty('activeStep');
  });

  it('ORC-01 keep each recent tool once, and at most the maximum', () => {
    const many = Array.from({ length: 15 }, (_, index) => `t${index}`);
    const merged = applied(NO_PROGRESS, {
      type: 'merge',
      updates: { recentlyUsedTools: ['t0', ...many] },
      unset: [],
    });
    expect(merged.recentlyUsedTools).toEqual(many.slice(0, 10));
  });
});

describe('calls', () => {
  const call = (callId: string, outcome: 'succeeded' | 'failed', turnId?: string): OrchestrationEntry => ({
    type: 'tool',
    tool: 'a',
    callId,
    outcome,
    ...(turnId === undefined ? {} : { turnId }),
    sequenceOf: { name: 'one', sequence: ['a', 'a', 'a'] },
  });
  const outcomes = (...entries: OrchestrationEntry[]): unknown => {
    const after = entries.reduce(applied, NO_PROGRESS);
    return [after.sequenceIndex, after.toolHistory.map(({ outcome }) => outcome)];
  };

  it('ORC-07 count once by id and turn; one that failed may succeed later, and not the other way round', () => {
    expect(outcomes(call('1', 'succeeded'), call('1', 'succeeded'))).toEqual([1, ['succeeded']]);
    expect(outcomes(call('1', 'succeeded', 't'), call('1', 'succeeded', 'u'), call('1', 'succeeded'))).toEqual([
      3,
      ['succeeded', 'succeeded', 'succeeded'],
    ]);
    expect(outcomes(call('1', 'failed'), call('1', 'failed'), call('1', 'succeeded'), call('1', 'failed'))).toEqual([
      1,
      ['failed', 'succeeded'],
    ]);
  });
});

describe('the active step', () => {
  const conditions = (...all: NonNullable<OrchestrationStep['conditions']>) =>
    at(
      { name: 'rest', isDefault: true, conditions: [{ type: 'tool_used', value: 'a' }] },
      { name: 'met', conditions: all, sequence: ['a', { optional: 'o' }, 'b'] },
    );
  const isMet = (desk: ReturnType<typeof conditions>, ...tools: string[]): boolean =>
    desk.uses(...tools).activeStep === 'met';

  it('ORC-25 is the default one, whose own conditions are ignored, until another one matches, and stays that one', () => {
    const desk = at(
      { name: 'first', conditions: [{ type: 'last_tool', value: 'x' }] },
      { name: 'second', conditions: [{ type: 'last_tool', value: 'x' }] },
      { name: 'rest', isDefault: true, conditions: [{ type: 'last_tool', value: 'y' }] },
    );
    expect(desk.uses('a').activeStep).toBe('rest');
    expect(desk.uses('x').activeStep).toBe('first');
    expect(desk.uses('x', 'y').activeStep).toBe('first');
  });

  it('ORC-25 falls back to the default one when the plan does not know it any more', () => {
    const desk = at({ name: 'rest', isDefault: true, sequence: ['a', 'b'] });
    const stranger = applied(NO_PROGRESS, { type: 'step', step: 'gone' });
    expect(desk.from(stranger).uses('a')).toMatchObject({ activeStep: 'rest', sequenceIndex: 1 });
    const lost = at({ name: 'only', conditions: [{ type: 'last_tool', value: 'x' }] });
    expect(lost.from(stranger).uses('a')).not.toHaveProperty('activeStep');
  });

  it('ORC-26 tool_used looks at the recent tools', () => {
    const desk = conditions({ type: 'tool_used', value: 'a' });
    expect(isMet(desk, 'b', 'a', 'b')).toBe(true);
    expect(isMet(desk, 'b')).toBe(false);
    const many = Array.from({ length: 10 }, (_, index) => `t${index}`);
    const late = conditions({ type: 'tool_used', value: 'a' }, { type: 'last_tool', value: 't9' });
    expect(isMet(late, 'a', ...many)).toBe(false);
    expect(isMet(late, ...many.slice(0, 5), 'a', ...many.slice(5))).toBe(true);
  });

  it('ORC-26 sequence_match wants the last uses in order', () => {
    const desk = conditions({ type: 'sequence_match' });
    expect(isMet(desk, 'x', 'a', 'b')).toBe(true);
    expect(isMet(desk, 'a', 'o', 'b')).toBe(true);
    expect(isMet(desk, 'b', 'a')).toBe(false);
    expect(isMet(desk, 'a', 'x', 'b')).toBe(false);
  });

  it('ORC-27 last_tool, tool_count and tool_failed look at the history', () => {
    expect(isMet(conditions({ type: 'last_tool', value: 'a' }), 'b', 'a')).toBe(true);
    expect(isMet(conditions({ type: 'last_tool', value: 'a' }), 'b')).toBe(false);
    expect(isMet(conditions({ type: 'tool_count', value: 'a', count: 2 }), 'a', 'b', 'a')).toBe(true);
    expect(isMet(conditions({ type: 'tool_count', value: 'a', count: 2 }), 'a', 'b')).toBe(false);
    expect(isMet(conditions({ type: 'tool_failed', value: 'a' }), 'a!', 'b')).toBe(true);
    expect(isMet(conditions({ type: 'tool_failed', value: 'a' }), 'a!')).toBe(true);
    expect(isMet(conditions({ type: 'tool_failed', value: 'a', count: 2 }), 'a!', 'b')).toBe(false);
    expect(isMet(conditions({ type: 'tool_count', value: 'a', count: 1 }), 'a!', 'b')).toBe(false);
  });

  it('ORC-27 message_matches checks the current message only', () => {
    const desk = conditions({ type: 'message_matches', value: 'ja', flags: 'i' });
    expect(desk.uses('a')).toMatchObject({ activeStep: 'rest' });
    expect(desk.saying('JA!').uses('a')).toMatchObject({ activeStep: 'met' });
  });

  it('ORC-27 tokens_over, any_of and not', () => {
    const used = applied(NO_PROGRESS, {
      type: 'tokens',
      usage: { promptTokens: 6, completionTokens: 5, totalTokens: 11 },
    });
    expect(conditions({ type: 'tokens_over', value: 10 }).from(used).uses('a').activeStep).toBe('met');
    expect(conditions({ type: 'tokens_over', value: 11 }).from(used).uses('a').activeStep).toBe('rest');
    const either = conditions({
      type: 'any_of',
      conditions: [
        { type: 'last_tool', value: 'a' },
        { type: 'not', condition: { type: 'tool_used', value: 'b' } },
      ],
    });
    expect(isMet(either, 'b', 'a')).toBe(true);
    expect(isMet(either, 'c')).toBe(true);
    expect(isMet(either, 'b', 'c')).toBe(false);
  });
});

describe('any plan, any uses', () => {
  const uses = fc.array(randomUse, { maxLength: 120 });

  it('ORC-01 stays within its limits, and does not change its arguments', () => {
    fc.assert(
      fc.property(randomPlan, uses, (plan, list) => {
        let progress = NO_PROGRESS;
        for (const entry of entriesOf(plan, list)) {
          progress = applyEntry(deepFreeze(progress), deepFreeze(entry), AT, rulesOf(plan)).progress;
          const { activeStep, sequenceIndex, recentlyUsedTools, toolHistory } = progress;
          const step = plan.steps.find(({ name }) => name === activeStep);
          expect(sequenceIndex).toBeLessThanOrEqual(step?.sequence?.length ?? 0);
          expect(recentlyUsedTools.length).toBeLessThanOrEqual(10);
          expect(new Set(recentlyUsedTools).size).toBe(recentlyUsedTools.length);
          expect(toolHistory.length).toBeLessThanOrEqual(100);
        }
        expect(progress.toolHistory).toHaveLength(Math.min(100, list.length));
      }),
    );
  });

  it('ORC-30 has the same result however often and wherever the entries are folded', () => {
    fc.assert(
      fc.property(randomPlan, uses, (plan, list) => {
        const rules = rulesOf(plan);
        const entries = entriesOf(plan, list);
        const batches = entries.map((entry, index) => ({
          id: String(index),
          at: AT,
          entries: [entry as unknown as JsonValue],
        }));
        let folded = documentOf([]);
        for (const batch of batches) {
          folded = { ...folded, version: folded.version + 1, batches: [...folded.batches, batch] };
          const fold = foldOf(folded, rules);
          if (!fold) continue;
          const value = JSON.parse(JSON.stringify(fold.value)) as JsonValue;
          folded = { ...folded, value, batches: folded.batches.slice(foldedBy(folded, fold)) };
        }
        expect(folded.batches.length).toBeLessThan(32);
        expect(progressOf(folded, rules)).toEqual(progressOf(documentOf(batches), rules));
      }),
    );
  });
});

it('FIX-31 folds a document whose plan is gone', () => {
  const plan = defineStepPlan({ agent: 'test', steps: [{ name: 'one', isDefault: true, sequence: ['a', 'b'] }] });
  const uses = Array.from({ length: 40 }, () => ({ tool: 'a', failed: false }));
  const batches = entriesOf(plan, uses).map((entry, index) => ({
    id: String(index),
    at: AT,
    entries: [entry as unknown as JsonValue],
  }));
  expect(foldOf(documentOf(batches), rulesOf(plan))).toMatchObject({ through: '31' });
  expect(foldOf(documentOf(batches), { plan: () => undefined })).toMatchObject({ through: '31' });
});

it('PRF-10 folds a document of few batches once they have many entries', () => {
  const plan = defineStepPlan({ agent: 'test', steps: [{ name: 'one', isDefault: true, sequence: ['a', 'b'] }] });
  const entries = entriesOf(plan, Array<{ tool: string; failed: boolean }>(10).fill({ tool: 'a', failed: false }));
  const batches = Array.from({ length: 10 }, (_, index) => ({
    id: String(index),
    at: AT,
    entries: entries as unknown as JsonValue[],
  }));
  expect(foldOf(documentOf(batches), rulesOf(plan))).toMatchObject({ through: '1' });
  expect(foldOf(documentOf(batches.slice(1)), rulesOf(plan))).toBeNull();
});

/** Applies uses of tools to a plan and an earlier progress. A trailing `!` marks a failed use. */
function at(...steps: OrchestrationStep[]) {
  const plan = defineStepPlan({ agent: 'test', steps });
  const desk = (start: OrchestrationProgress, message?: string) => ({
    from: (progress: OrchestrationProgress) => desk(progress, message),
    saying: (text: string) => desk(start, text),
    uses: (...tools: string[]): OrchestrationProgress =>
      entriesOf(
        plan,
        tools.map((tool) => ({
          tool: tool.replace('!', ''),
          failed: tool.endsWith('!'),
          ...(message === undefined ? {} : { message }),
        })),
      ).reduce((progress, entry) => applyEntry(progress, entry, AT, rulesOf(plan)).progress, start),
  });
  return desk(NO_PROGRESS);
}

function applied(progress: OrchestrationProgress, entry: OrchestrationEntry): OrchestrationProgress {
  return applyEntry(progress, entry, AT, { plan: () => undefined }).progress;
}

function entriesOf(
  plan: StepPlan,
  uses: readonly { readonly tool: string; readonly failed: boolean; readonly message?: string }[],
): OrchestrationEntry[] {
  return uses.map(({ tool, failed, message }) => ({
    type: 'tool',
    tool,
    outcome: failed ? 'failed' : 'succeeded',
    plan: plan.signature,
    facts: messageFacts(plan, message),
  }));
}

function rulesOf(plan: StepPlan): OrchestrationRules {
  return { plan: (signature) => (signature === plan.signature ? plan : undefined) };
}

function documentOf(batches: StateDocument['batches']): StateDocument {
  return { value: null, batches, version: batches.length, createdAt: AT, accessedAt: AT };
}
