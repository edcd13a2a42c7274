import fc from 'fast-check';
import { defineStepPlan, type OrchestrationCondition, type SequenceItem, type StepPlan } from '../../lib/index.js';
import { type ReferenceUse } from './reference.js';

const TOOLS = ['search', 'book', 'pay', 'cancel', 'help'] as const;
const NAMES = ['one', 'two', 'three', 'four'] as const;

const tool = fc.constantFrom(...TOOLS);
const tools = fc.uniqueArray(tool, { minLength: 1, maxLength: 3 });

const item: fc.Arbitrary<SequenceItem> = fc.oneof(
  { weight: 4, arbitrary: tool },
  { weight: 1, arbitrary: tools.map((anyOf) => ({ anyOf })) },
  { weight: 1, arbitrary: tool.map((optional) => ({ optional })) },
);

const { condition } = fc.letrec<{ condition: OrchestrationCondition }>((tie) => ({
  condition: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.record({ type: fc.constant('tool_used' as const), value: tool }),
    fc.record({ type: fc.constant('last_tool' as const), value: tool }),
    fc.record({ type: fc.constant('tool_count' as const), value: tool, count: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ type: fc.constant('tool_failed' as const), value: tool, count: fc.integer({ min: 1, max: 2 }) }),
    fc.record({ type: fc.constant('message_matches' as const), value: fc.constantFrom('yes', '^n') }),
    fc.constant({ type: 'sequence_match' as const }),
    fc.record({ type: fc.constant('not' as const), condition: tie('condition') }),
    fc.record({
      type: fc.constant('any_of' as const),
      conditions: fc.array(tie('condition'), { minLength: 1, maxLength: 2 }),
    }),
  ),
}));

const step = fc.record(
  {
    conditions: fc.array(condition, { minLength: 1, maxLength: 2 }),
    sequence: fc.array(item, { minLength: 1, maxLength: 4 }),
    onComplete: fc.constantFrom(...NAMES),
    resetSequenceOn: fc.uniqueArray(tool, { minLength: 1, maxLength: 1 }),
  },
  { requiredKeys: [] },
);

/** Plans of every shape that the rules allow. */
export const randomPlan: fc.Arbitrary<StepPlan> = fc
  .record({
    steps: fc.array(step, { minLength: 1, maxLength: NAMES.length }),
    defaultStep: fc.option(fc.nat({ max: NAMES.length - 1 })),
  })
  .map(({ steps, defaultStep }) =>
    asPlan(steps.map((each, at) => ({ ...each, name: NAMES[at], isDefault: at === defaultStep }))),
  )
  .filter((plan) => plan !== null);

export const randomUse: fc.Arbitrary<ReferenceUse> = fc.record(
  {
    tool,
    failed: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
    message: fc.constantFrom('yes please', 'no', ''),
  },
  { requiredKeys: ['tool', 'failed'] },
);

/** `null` for what no plan may be. */
function asPlan(steps: unknown): StepPlan | null {
  try {
    return defineStepPlan({ agent: 'random', steps: steps as StepPlan['steps'] });
  } catch {
    return null;
  }
}
