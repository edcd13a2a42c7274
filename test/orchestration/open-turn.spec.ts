import fc from 'fast-check';
import { defineStepPlan, type OrchestrationStep } from 'nestjs-agent-sessions';
import { type StateDocument } from 'nestjs-agent-sessions/adapter';
import { type JsonValue } from '../../lib/common/json.js';
import { type OrchestrationRules } from '../../lib/orchestration/apply-entry.js';
import { progressOf, readState, toValue } from '../../lib/orchestration/orchestration-document.js';
import {
  type OrchestrationEntry,
  type StoredEntry,
  type TurnEntry,
  type TurnPart,
} from '../../lib/orchestration/orchestration-entry.js';
import { isLimited } from '../../lib/orchestration/tool-limits.js';

type EntryOf<Type> = Extract<OrchestrationEntry, { type: Type }>;

const AT = '2026-11-21T08:00:00.000Z';
const PLAN = defineStepPlan({
  agent: 'test',
  steps: [
    { name: 'ask', isDefault: true, sequence: ['look', 'pay'], onComplete: 'thank' },
    { name: 'thank', availableTools: { allowed: ['thank'] } },
  ],
});
/** One payment, then none. */
const PAY_ONCE = defineStepPlan({
  agent: 'test',
  steps: [
    { name: 'open', isDefault: true },
    { name: 'paid', conditions: [{ type: 'tool_used', value: 'pay' }], availableTools: { denied: ['pay'] } },
  ],
});
/** Restores the progress before the first turn. */
const UNDO: OrchestrationEntry = {
  type: 'merge',
  updates: { recentlyUsedTools: [], toolHistory: [], sequenceIndex: 0, progress: {} },
  unset: ['activeStep'],
};
const RULES: OrchestrationRules = {
  plan: (signature) => [PLAN, PAY_ONCE].find((plan) => plan.signature === signature),
};

const used = (turnId: string, tool: string, outcome: 'succeeded' | 'failed' = 'succeeded'): EntryOf<'tool'> => ({
  type: 'tool',
  tool,
  callId: `${turnId} ${tool}`,
  turnId,
  outcome,
  plan: PLAN.signature,
  facts: [],
});
const admitted = (tool: string, turnId?: string, plan = PLAN): EntryOf<'admit'> => ({
  type: 'admit',
  tool,
  callId: `${turnId ?? 'outside'} ${tool}`,
  ...(turnId === undefined ? {} : { turnId }),
  plan: plan.signature,
  onViolation: 'reject',
  facts: [],
});
const ofTurn = (turnId: string, mode: TurnEntry['mode'], fence: number, ...entries: TurnPart[]): TurnEntry => ({
  type: 'turn',
  turnId,
  fence,
  mode,
  entries,
});

function documentOf(entries: readonly StoredEntry[], value: JsonValue = null): StateDocument {
  const batches = entries.map((entry, index) => ({
    id: String(index),
    at: AT,
    entries: [entry as unknown as JsonValue],
  }));
  return { value, batches, version: batches.length, createdAt: AT, accessedAt: AT };
}

/** Returns a value as a store returns it. */
function stored(value: unknown): JsonValue {
  return JSON.parse(JSON.stringify(value)) as JsonValue;
}

/** The state that readers see, shortened. */
function seen(...entries: StoredEntry[]): string {
  const { activeStep, sequenceIndex, toolHistory } = readState('s', documentOf(entries), RULES);
  return [`${activeStep} ${sequenceIndex}`, ...toolHistory.map(({ tool, outcome }) => `${tool} ${outcome}`)].join(', ');
}

describe('a turn that stores uses before it settles', () => {
  const look = ofTurn('t1', 'add', 1, admitted('look', 't1'));

  it('FIX-88 counts for admissions, and for readers when it settles', () => {
    expect(seen(look)).toBe('undefined 0');
    expect(seen(look, admitted('pay'))).toBe('thank 0, look admitted, pay admitted');
    expect(seen(look, ofTurn('t1', 'end', 1, used('t1', 'look')))).toBe('ask 1, look succeeded');
  });

  it('FIX-88 is removed when it fails, unless a use follows that is only admitted after it', () => {
    expect(seen(look, ofTurn('t1', 'end', 1), admitted('pay'))).toBe('ask 0');
    expect(seen(look, admitted('pay'), ofTurn('t1', 'end', 1))).toBe('thank 0, look admitted, pay admitted');
  });

  it('FIX-88 is removed when it fails, although a use follows that does not need it', () => {
    const pay = ofTurn('t1', 'add', 1, admitted('pay', 't1', PAY_ONCE));
    const mail = admitted('mail', undefined, PAY_ONCE);
    expect(seen(pay, mail)).toBe('open 0, mail admitted');
    expect(seen(pay, mail, admitted('pay', undefined, PAY_ONCE))).toBe('open 0, mail admitted');
    for (const [turnId, fence] of [
      ['t1', 1],
      ['t2', 2],
    ] as const) {
      const ended = ofTurn(turnId, 'end', fence);
      expect(seen(pay, mail, ended)).toBe('open 0, mail admitted');
      expect(seen(pay, mail, ended, admitted('pay', undefined, PAY_ONCE))).toBe('paid 0, mail admitted, pay admitted');
    }
  });

  it('FIX-88 counts its own tokens once when an admitted use follows', () => {
    const usage = { promptTokens: 60, completionTokens: 40, totalTokens: 100 };
    const none = { promptTokens: 0, completionTokens: 0, totalTokens: 0 };
    const tokens: TurnPart = { type: 'tokens', usage, turnId: 't1' };
    const add = ofTurn('t1', 'add', 1, tokens, admitted('look', 't1'));
    const recorded: TurnPart = { type: 'tokens', usage: none, turnId: 't1' };
    const end = ofTurn('t1', 'end', 1, recorded, { ...tokens, stored: true }, used('t1', 'look'));
    const { cumulativeTokenUsage } = readState('s', documentOf([add, admitted('pay'), end]), RULES);
    expect(cumulativeTokenUsage).toEqual(usage);
  });

  it('FIX-88 settles in place when an admitted use follows: nothing counts twice', () => {
    const end = ofTurn('t1', 'end', 1, used('t1', 'look'));
    expect(seen(look, admitted('pay'), end)).toBe('thank 0, look succeeded, pay admitted');
    const restart: TurnPart = { type: 'restart', plan: PLAN.signature, stored: true };
    const restarted = ofTurn('t1', 'end', 1, restart, used('t1', 'look'));
    expect(seen(look, admitted('pay'), restarted)).toBe('thank 0, look succeeded, pay admitted');
  });

  it('FIX-88 replaces what it stored without a use that failed', () => {
    const replaced = ofTurn('t1', 'replace', 1, used('t1', 'look', 'failed'));
    expect(seen(look, replaced, admitted('pay'))).toBe('undefined 0');
    expect(seen(look, replaced, admitted('look'))).toBe('ask 1, look admitted');
    const end = ofTurn('t1', 'end', 1, used('t1', 'look', 'failed'));
    expect(seen(look, replaced, admitted('look'), end)).toBe('ask 1, look failed, look admitted');
    expect(seen(look, admitted('pay'), replaced)).toBe('thank 0, look failed, pay admitted');
  });

  it('FIX-88 drops uses of an earlier attempt when it restarts, unless a use follows that needs them', () => {
    const pay = ofTurn('t1', 'add', 1, admitted('pay', 't1', PAY_ONCE));
    const [mail, outside] = [admitted('mail', undefined, PAY_ONCE), admitted('pay', undefined, PAY_ONCE)];
    const restart = ofTurn('t1', 'restart', 2);
    expect(seen(pay, mail, restart, outside)).toBe('paid 0, mail admitted, pay admitted');
    const again = ofTurn('t1', 'add', 2, { ...admitted('pay', 't1', PAY_ONCE), callId: 'again' });
    expect(seen(pay, mail, restart, again, outside)).toBe('open 0, mail admitted');
    const end = ofTurn('t1', 'end', 2, { ...used('t1', 'pay'), callId: 'again', plan: PAY_ONCE.signature });
    expect(seen(pay, mail, restart, again, end)).toBe('paid 0, mail admitted, pay succeeded');
    expect(seen(look, admitted('pay'), restart)).toBe('thank 0, look admitted, pay admitted');
    expect(seen(look, admitted('pay'), restart, ofTurn('t1', 'end', 2))).toBe('thank 0, look admitted, pay admitted');
  });

  it('FIX-88 keeps the uses that follow an undo at the start of the turn, however the turn continues', () => {
    const replaced = { ...used('t0', 'pay'), plan: PAY_ONCE.signature };
    const pay = ofTurn('t1', 'add', 1, UNDO, admitted('pay', 't1', PAY_ONCE));
    const mail = admitted('mail', undefined, PAY_ONCE);
    const undo: TurnPart = { ...UNDO, stored: true };
    const restart = ofTurn('t1', 'restart', 2, undo);
    const end = ofTurn('t1', 'end', 2, undo, { ...used('t1', 'pay'), plan: PAY_ONCE.signature });
    const stopped = ofTurn('t1', 'end', 2, undo);
    const before = 'paid 0, pay succeeded';
    expect(seen(replaced, pay, mail)).toBe(`${before}, mail admitted`);
    expect(seen(replaced, pay, mail, end)).toBe('paid 0, pay succeeded, mail admitted');
    expect(seen(replaced, pay, mail, restart, end)).toBe('paid 0, pay succeeded, mail admitted');
    expect(seen(replaced, pay, mail, stopped)).toBe('paid 0, pay admitted, mail admitted');
    expect(seen(replaced, pay, mail, ofTurn('t1', 'end', 2))).toBe(`${before}, mail admitted`);
    // Without a use that follows, the undo applies to all that was stored before the turn settled.
    for (const entries of [[], [restart]]) {
      expect(seen(replaced, pay, ...entries, end)).toBe('paid 0, pay succeeded');
      expect(seen(replaced, pay, ...entries, stopped)).toBe('undefined 0');
    }
    expect(seen(replaced, stopped)).toBe('undefined 0');
  });

  it('FIX-88 is closed by the next turn', () => {
    expect(seen(look, ofTurn('t2', 'end', 2))).toBe('undefined 0');
    const both = ofTurn('t2', 'end', 2, used('t2', 'look'), used('t2', 'pay'));
    expect(seen(look, both)).toBe('thank 0, look succeeded, pay succeeded');
    expect(seen(look, ofTurn('t2', 'add', 2, admitted('pay', 't2')), ofTurn('t2', 'end', 2, used('t2', 'mail')))).toBe(
      'ask 0, mail succeeded',
    );
  });

  it('FIX-88 ignores late entries of an attempt that lost its turn, or has ended', () => {
    const second = ofTurn('t1', 'add', 2, admitted('look', 't1'));
    const late = ofTurn('t1', 'add', 1, admitted('pay', 't1'));
    expect(seen(look, second, late, admitted('pay'))).toBe('thank 0, look admitted, pay admitted');
    const end = ofTurn('t1', 'end', 2, used('t1', 'look'));
    for (const fence of [1, 2]) {
      const afterEnd = ofTurn('t1', 'add', fence, admitted('pay', 't1'));
      expect(seen(look, second, end, afterEnd, admitted('pay'))).toBe('thank 0, look succeeded, pay admitted');
    }
  });

  it('FIX-88 applies all of its entries to a state that was reset meanwhile', () => {
    const end = ofTurn('t1', 'end', 1, used('t1', 'look'));
    expect(seen(end)).toBe('ask 1, look succeeded');
    expect(seen(end, admitted('pay'))).toBe('thank 0, look succeeded, pay admitted');
  });

  it('FIX-88 means the same wherever the entries are folded', () => {
    const tool = fc.constantFrom('look', 'pay', 'thank', 'mail');
    const turn = fc.constantFrom('t1', 't2');
    const mode = fc.constantFrom('add' as const, 'replace' as const, 'restart' as const, 'end' as const);
    const fence = fc.integer({ min: 1, max: 3 });
    const part = fc.oneof(
      fc.tuple(turn, tool, fc.constantFrom('succeeded' as const, 'failed' as const)).map((all) => used(...all)),
      fc.tuple(tool, turn).map(([name, id]) => admitted(name, id)),
      fc.constantFrom<TurnPart>(UNDO, { ...UNDO, stored: true }),
    );
    const outside = fc.oneof(
      tool.map((name) => admitted(name)),
      tool.map((name): OrchestrationEntry => ({
        type: 'outcome',
        callId: `outside ${name}`,
        outcome: 'failed',
        plan: PLAN.signature,
        facts: [],
      })),
      fc.constant<OrchestrationEntry>({ type: 'step', step: 'ask', plan: PLAN.signature }),
      fc.constant<OrchestrationEntry>({
        type: 'tokens',
        usage: { promptTokens: 1, completionTokens: 0, totalTokens: 1 },
      }),
    );
    const entry: fc.Arbitrary<StoredEntry> = fc.oneof(
      outside,
      fc
        .tuple(turn, mode, fence, fc.array(part, { maxLength: 3 }))
        .map(([id, how, number, parts]) => ofTurn(id, how, number, ...parts)),
    );
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 12 }), fc.nat(), (entries, cut) => {
        const at = cut % (entries.length + 1);
        const value = stored(toValue(progressOf(documentOf(entries.slice(0, at)), RULES)));
        const folded = progressOf(documentOf(entries.slice(at), value), RULES);
        expect(stored(folded)).toEqual(stored(progressOf(documentOf(entries), RULES)));
      }),
    );
  });
});

describe('the uses that a plan limits', () => {
  const limited = (...steps: OrchestrationStep[]): string[] =>
    ['pay', 'search', 'mail'].filter((tool) => isLimited(defineStepPlan({ agent: 'test', steps }), tool));

  it('FIX-88 are those of tools that it can reject and whose uses it counts', () => {
    const open = { name: 'open', isDefault: true };
    const denied = { denied: ['pay', 'search'] };
    const paid = (type: 'tool_used' | 'last_tool'): OrchestrationStep => ({
      name: 'paid',
      conditions: [{ type, value: 'pay' }],
      availableTools: denied,
    });
    expect(limited(open, paid('tool_used'))).toEqual(['pay']);
    // Every use changes what was used last.
    expect(limited(open, paid('last_tool'))).toEqual(['pay', 'search']);
    expect(limited({ ...open, sequence: ['pay', { optional: 'mail' }, 'search'] })).toEqual(['pay', 'search', 'mail']);
    expect(limited({ ...open, sequence: ['pay', 'pay'], resetSequenceOn: ['mail'] })).toEqual([]);
    expect(limited({ ...open, availableTools: { allowed: ['mail'] } })).toEqual([]);
    const warned = defineStepPlan({ agent: 'test', steps: [open, paid('tool_used')], onViolation: 'warn' });
    expect(isLimited(warned, 'pay')).toBe(false);
  });
});
