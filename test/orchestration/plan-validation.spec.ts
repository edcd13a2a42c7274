import { Injectable } from '@nestjs/common';
import {
  defineStepPlan,
  Intent,
  memoryAdapter,
  type OrchestrationCondition,
  Orchestrator,
  SessionsConfigurationError,
  StepPredicate,
} from 'nestjs-agent-sessions';
import { textLike, orchestrate, planOf } from '../support/orchestration.js';
import { startApplication } from '../support/running-application.js';

const ask = (more: object): object => ({ steps: [{ name: 'first' }, { name: 'ask', ...more }] });
const when = (condition: unknown): object => ask({ conditions: [{ type: 'tool_used', value: 'search' }, condition] });

const TOOLS = 'must be a non-empty list of tool names. A name may begin and end with *.';
const NAME = 'must be a string of 1 to 256 characters without control characters or lone surrogates.';
const SEQUENCE = 'sequence must be a non-empty list of tool names, { anyOf: [names] } and { optional: name }.';
const TYPES =
  'tool_used, sequence_match, last_tool, tool_count, tool_failed, message_matches, tokens_over, any_of, not, predicate';

/** Invalid plans of `desk`, and their error messages after "The plan of desk: ". */
const WRONG: readonly (readonly [string, object, string])[] = [
  ['an unknown key', { step: [] }, 'step is not a known key.'],
  ['steps that are not a list', { steps: {} }, 'steps must be a list of steps.'],
  [
    'too many steps',
    { steps: Array.from({ length: 201 }, (_, n) => ({ name: `s${n}` })) },
    'has 201 steps; at most 200 are allowed.',
  ],
  ['an unknown onViolation', { onViolation: 'shout' }, 'onViolation must be one of reject, warn, reset.'],
  ...[0, -1, NaN, Infinity, '5'].map(
    (tokenBudget) =>
      [
        `a budget of ${tokenBudget}`,
        { tokenBudget },
        'tokenBudget must be a number of tokens greater than 0.',
      ] as const,
  ),

  ['an invalid step', { steps: [{ name: 'a' }, null] }, 'step 2: must be an object.'],
  ['a step without a name', { steps: [{ name: 'a' }, {}] }, `step 2: name ${NAME}`],
  ['an empty name', { steps: [{ name: '' }] }, `step 1: name ${NAME}`],
  ['a control character', { steps: [{ name: 'a\nb' }] }, `step 1: name ${NAME}`],
  [
    'two steps of a name',
    { steps: [{ name: 'a' }, { name: 'b' }, { name: 'a' }] },
    'step names must be unique. Duplicate: "a".',
  ],
  [
    'two defaults',
    { steps: [{ name: 'a', isDefault: true }, { name: 'b' }, { name: 'c', isDefault: true }] },
    'at most one step may have isDefault. Steps with it: a, c.',
  ],
  ['an unknown key of a step', ask({ tool: 'search' }), 'step ask: tool is not a known key.'],
  ['a description that is not a string', ask({ description: 1 }), 'step ask: description must be a string.'],
  ['isDefault that is not a boolean', ask({ isDefault: 'yes' }), 'step ask: isDefault must be a boolean.'],

  [
    'conditions that are not a list',
    ask({ conditions: {} }),
    'step ask: conditions must be a non-empty list of conditions.',
  ],
  [
    'no conditions in the list',
    ask({ conditions: [] }),
    'step ask: conditions must be a non-empty list of conditions.',
  ],
  ['an invalid condition', when(null), `step ask: conditions[1].type must be one of ${TYPES}. Received: undefined.`],
  [
    'a condition without a type',
    when({}),
    `step ask: conditions[1].type must be one of ${TYPES}. Received: undefined.`,
  ],
  [
    'an unknown type',
    when({ type: 'tool' }),
    `step ask: conditions[1].type must be one of ${TYPES}. Received: "tool".`,
  ],
  [
    'a type that is a name of Object.prototype',
    when({ type: 'constructor' }),
    `step ask: conditions[1].type must be one of ${TYPES}. Received: "constructor".`,
  ],
  ...['tool_used', 'last_tool', 'tool_failed', 'predicate'].map(
    (type) => [`${type} without a value`, when({ type }), `step ask: conditions[1].value ${NAME}`] as const,
  ),
  ['tool_count without a value', when({ type: 'tool_count', count: 1 }), `step ask: conditions[1].value ${NAME}`],
  ['tool_used with no text', when({ type: 'tool_used', value: 5 }), `step ask: conditions[1].value ${NAME}`],
  [
    'an unknown key of a condition',
    when({ type: 'tool_used', value: 'a', count: 1 }),
    'step ask: conditions[1].count is not a known key.',
  ],
  [
    'sequence_match without a sequence',
    when({ type: 'sequence_match' }),
    'step ask: conditions[1] is sequence_match, but the step has no sequence. Add one to the step.',
  ],
  [
    'sequence_match with a value',
    ask({ sequence: ['a'], conditions: [{ type: 'sequence_match', value: 'a' }] }),
    'step ask: conditions[0].value is not a known key.',
  ],
  [
    'tool_count without a count',
    when({ type: 'tool_count', value: 'a' }),
    'step ask: conditions[1].count must be an integer from 1 to 100.',
  ],
  ...[0, 101, 1.5, '1'].flatMap((count) =>
    ['tool_count', 'tool_failed'].map(
      (type) =>
        [
          `${type} of ${JSON.stringify(count)}`,
          when({ type, value: 'a', count }),
          'step ask: conditions[1].count must be an integer from 1 to 100.',
        ] as const,
    ),
  ),
  ...[5, undefined].map(
    (value) =>
      [
        `message_matches of ${value}`,
        when({ type: 'message_matches', value }),
        'step ask: conditions[1].value must be a regular expression as a string.',
      ] as const,
  ),
  ...Object.entries({
    '(': 'missing closing ): `(`',
    '(?=a)': 'invalid or unsupported Perl syntax: `(?=`',
    '(a)\\1': 'invalid escape sequence: `\\1`',
    '\\p{Script=Greek}': 'invalid character class range: `\\p{Script=Greek}`',
  }).map(
    ([value, reason]) =>
      [
        `message_matches of ${value}`,
        when({ type: 'message_matches', value }),
        `step ask: conditions[1].value must be a regular expression in RE2's syntax, without lookaround and backreferences. Received: ${reason}.`,
      ] as const,
  ),
  [
    'message_matches of an expression that is too large',
    when({ type: 'message_matches', value: '\\w{600}' }),
    'step ask: conditions[1].value has 602 instructions; at most 200 are allowed. Repeat less, or split it by any_of.',
  ],
  ...['g', 'y', 'ii', 'v', 5].map(
    (flags) =>
      [
        `message_matches with flags ${flags}`,
        when({ type: 'message_matches', value: 'a', flags }),
        'step ask: conditions[1].flags must contain only the letters imsu, each at most once.',
      ] as const,
  ),
  ...[-1, NaN, '5', undefined].map(
    (value) =>
      [
        `tokens_over ${value}`,
        when({ type: 'tokens_over', value }),
        'step ask: conditions[1].value must be a number of tokens, 0 or more.',
      ] as const,
  ),
  [
    'any_of of nothing',
    when({ type: 'any_of', conditions: [] }),
    'step ask: conditions[1].conditions must be a non-empty list of conditions.',
  ],
  [
    'any_of something wrong',
    when({ type: 'any_of', conditions: [{ type: 'tool_used' }] }),
    `step ask: conditions[1].conditions[0].value ${NAME}`,
  ],
  [
    'not of nothing',
    when({ type: 'not' }),
    `step ask: conditions[1].condition.type must be one of ${TYPES}. Received: undefined.`,
  ],
  [
    'something wrong deep inside',
    when({
      type: 'not',
      condition: { type: 'any_of', conditions: [{ type: 'last_tool', value: 'a' }, { type: 'x' }] },
    }),
    `step ask: conditions[1].condition.conditions[1].type must be one of ${TYPES}. Received: "x".`,
  ],

  ['tools that are not an object', ask({ availableTools: 'a' }), 'step ask: availableTools must be an object.'],
  [
    'an unknown key of tools',
    ask({ availableTools: { allow: [] } }),
    'step ask: availableTools.allow is not a known key.',
  ],
  ...['allowed', 'denied'].flatMap((key) =>
    [[], 'a', [''], ['a*b'], ['*a*b*'], [5]].map(
      (list) =>
        [
          `${key}: ${JSON.stringify(list)}`,
          ask({ availableTools: { [key]: list } }),
          `step ask: availableTools.${key} ${TOOLS}`,
        ] as const,
    ),
  ),

  ...[
    [],
    'a',
    [''],
    [5],
    [{}],
    [{ anyOf: [] }],
    [{ anyOf: ['a', 'a'] }],
    [{ anyOf: 'a' }],
    [{ anyOf: ['a'], optional: 'b' }],
    [{ optional: '' }, 'a'],
    [null],
    [['a']],
  ].map(
    (sequence) => [`the sequence ${JSON.stringify(sequence)}`, ask({ sequence }), `step ask: ${SEQUENCE}`] as const,
  ),
  [
    'a sequence that ends with an optional tool',
    ask({ sequence: ['a', { optional: 'b' }] }),
    'step ask: sequence must not end with an optional tool, because its end could not be determined.',
  ],
  [
    'a sequence in which a use may be of two items',
    ask({ sequence: ['a', { optional: 'b' }, { anyOf: ['c', 'b'] }] }),
    'step ask: sequence[1] is ambiguous: b, c, b may come next. Use different tools.',
  ],
  [
    'a sequence that denied does not allow',
    ask({ sequence: ['a', 'pay'], availableTools: { denied: ['p*'] } }),
    'step ask: sequence[1] is pay, which availableTools does not allow.',
  ],
  [
    'a group without an allowed tool',
    ask({ sequence: [{ anyOf: ['a', 'b'] }], availableTools: { allowed: ['c'] } }),
    'step ask: sequence[0] is a or b, which availableTools does not allow.',
  ],
  [
    'onComplete that is not a step',
    ask({ sequence: ['a'], onComplete: 'nowhere' }),
    'step ask: onComplete must be the name of a step: first, ask. Received: "nowhere".',
  ],
  ['onComplete that is not a name', ask({ sequence: ['a'], onComplete: 5 }), `step ask: onComplete ${NAME}`],
  ['onComplete without a sequence', ask({ onComplete: 'first' }), 'step ask: onComplete requires a sequence.'],
  [
    'resetSequenceOn without a sequence',
    ask({ resetSequenceOn: ['a'] }),
    'step ask: resetSequenceOn requires a sequence.',
  ],
  ...[[], 'a', [''], [5]].map(
    (resetSequenceOn) =>
      [
        `resetSequenceOn: ${JSON.stringify(resetSequenceOn)}`,
        ask({ sequence: ['a'], resetSequenceOn }),
        'step ask: resetSequenceOn must be a non-empty list of tool names.',
      ] as const,
  ),
];

/** Plans of `desk` with settings that exclude each other, or that can never have an effect. */
const WITHOUT_EFFECT: readonly (readonly [string, object, string])[] = [
  ...[
    [{ name: 'browse', availableTools: { denied: ['pay'] } }],
    [{ name: 'one', isDefault: false, sequence: ['a'], onComplete: 'two' }, { name: 'two' }],
  ].map(
    (steps) =>
      [
        `a plan in which ${steps.map(({ name }) => name).join(' and ')} cannot become active`,
        { steps },
        'no step can become active. Add isDefault: true to the first step, or conditions to a step.',
      ] as const,
  ),
  ...[
    { sequence: ['a', 'b'], resetSequenceOn: ['x', 'b'] },
    { sequence: ['b', 'b'], resetSequenceOn: ['x', 'b'] },
    { sequence: ['a', { anyOf: ['b', 'c'] }], resetSequenceOn: ['x', 'b'] },
    { sequence: [{ optional: 'o' }, 'a', { optional: 'b' }, 'c'], resetSequenceOn: ['x', 'b'] },
  ].map(
    (step) =>
      [
        `a restart by a later tool of ${JSON.stringify(step.sequence)}`,
        ask(step),
        'step ask: resetSequenceOn[1] is b, which also comes later in the sequence. Its use would restart the sequence. Remove it from one of them.',
      ] as const,
  ),
  [
    'a restart by a tool that is denied',
    ask({ sequence: ['a'], resetSequenceOn: ['pay'], availableTools: { denied: ['p*'] } }),
    'step ask: resetSequenceOn[0] is pay, which availableTools does not allow. Allow it, or remove it.',
  ],
  [
    'a sequence with a tool that is denied',
    ask({ sequence: ['a', { optional: 'pay' }, 'b'], availableTools: { denied: ['p*'] } }),
    'step ask: sequence[1] is pay, which availableTools does not allow. Allow it, or remove it.',
  ],
  [
    'sequence_match of more uses than the history has',
    ask({
      sequence: [...Array.from({ length: 101 }, (_, n) => `t${n}`)],
      conditions: [{ type: 'not', condition: { type: 'sequence_match' } }],
    }),
    'step ask: conditions[0].condition: sequence_match allows at most 100 uses, because the history has no more. Received: 101. Shorten the sequence.',
  ],
];

const CONDITIONS: OrchestrationCondition[] = [
  { type: 'tool_used', value: 'a' },
  { type: 'sequence_match' },
  { type: 'last_tool', value: 'a' },
  { type: 'tool_count', value: 'a', count: 100 },
  { type: 'tool_failed', value: 'a' },
  { type: 'tool_failed', value: 'a', count: 1 },
  { type: 'message_matches', value: '^\\p{L}+$', flags: 'imsu' },
  { type: 'tokens_over', value: 0 },
  { type: 'any_of', conditions: [{ type: 'not', condition: { type: 'sequence_match' } }] },
];

describe('a step plan', () => {
  it.each(WRONG)('ORC-27 ORC-29 refuses %s, naming step and field', (_, config, message) => {
    const define = (): unknown => defineStepPlan({ agent: 'desk', ...config });
    expect(define).toThrow(SessionsConfigurationError);
    expect(define).toThrow(`The plan of desk: ${message}`);
  });

  it.each(WITHOUT_EFFECT)('FIX-23 refuses %s', (_, config, message) => {
    const define = (): unknown => defineStepPlan({ agent: 'desk', ...config });
    expect(define).toThrow(SessionsConfigurationError);
    expect(define).toThrow(`The plan of desk: ${message}`);
  });

  it('FIX-23 accepts restarts by tools that begin the sequence, and sequence_match of the whole history', () => {
    const uses = Array.from({ length: 100 }, (_, n) => `t${n}`);
    const plan = planOf([
      { name: 'a', isDefault: true, sequence: [{ optional: 'x' }, 'y', 'z'], resetSequenceOn: ['x', 'y', 'w'] },
      { name: 'b', sequence: [{ optional: 'x' }, ...uses], conditions: [{ type: 'sequence_match' }] },
    ]);
    expect(plan.steps).toHaveLength(2);
  });

  it.each([undefined, '', 5, 'a\n', 'a'.repeat(257)])('ORC-02 refuses the agent %j', (agent) => {
    expect(() => defineStepPlan({ agent: agent as string })).toThrow(SessionsConfigurationError);
  });

  it.each([undefined, null, 'desk', []])('ORC-02 rejects %j, which is not a plan', (plan) => {
    const define = (): unknown => defineStepPlan(plan as never);
    expect(define).toThrow(SessionsConfigurationError);
    expect(define).toThrow('defineStepPlan: the plan must be an object with an agent.');
  });

  it('ORC-24 ORC-27 ORC-29 takes everything that it may have', () => {
    const steps = [
      { name: 'a', description: '', isDefault: true, conditions: CONDITIONS, sequence: ['x'], onComplete: 'b' },
      { name: 'b', availableTools: { allowed: ['*', '*a', 'a*', '*a*', 'a'], denied: ['b'] } },
      {
        name: 'c',
        sequence: ['x', { anyOf: ['y', 'z'] }, { optional: 'v' }, { optional: 'y' }, 'z'],
        onComplete: 'c',
        resetSequenceOn: ['x', 'w'],
      },
      { name: 'toString' },
    ];
    expect(planOf(steps, { onViolation: 'reset', tokenBudget: 0.5 })).toEqual({
      agent: 'desk',
      signature: textLike(/^[0-9a-f]{64}$/),
      steps,
      onViolation: 'reset',
      tokenBudget: 0.5,
    });
    expect(planOf([])).toMatchObject({ steps: [], onViolation: 'reject' });
  });

  it('ORC-30 is an immutable copy, whose signature depends on its steps only', () => {
    const steps = [{ name: 'a', isDefault: true, sequence: ['x'] }];
    const plan = planOf(steps);
    steps[0].sequence.push('y');

    expect(plan.steps).toEqual([{ name: 'a', isDefault: true, sequence: ['x'] }]);
    expect(() => (plan.steps[0].sequence as string[]).push('z')).toThrow(TypeError);
    expect(planOf(steps).signature).not.toBe(plan.signature);
    expect(planOf(plan.steps, { onViolation: 'warn', agent: 'mail' }).signature).toBe(plan.signature);
  });
});

@Injectable()
@StepPredicate('is-open')
class IsOpen {
  holds(): boolean {
    return true;
  }
}

@Injectable()
@StepPredicate('is-open')
class IsOpenToo extends IsOpen {}

@Injectable()
@StepPredicate('is-open')
class WithoutMethod {}

@Orchestrator({ name: 'desk', steps: [{ name: 'ask', sequence: [] }] })
class WrongDesk {
  @Intent()
  say(): void {}
}

@Orchestrator({ name: 'desk', steps: [{ name: 'ask', isDefault: true }] })
class Desk {
  @Intent()
  say(): void {}
}

describe('plans at start-up', () => {
  const asking = planOf([
    { name: 'ask' },
    { name: 'open', conditions: [{ type: 'not', condition: { type: 'predicate', value: 'is-open' } }] },
  ]);
  const missing = 'The plan of desk: step open: no provider has @StepPredicate("is-open"). Add one.';

  it('ORC-27 fails without the provider of a predicate, and starts with it', async () => {
    await expect(startApplication({ orchestrators: [asking] })).rejects.toThrow(missing);
    await expect(startApplication({ orchestrators: [asking], providers: [IsOpen] })).resolves.toBeDefined();

    expect(() => orchestrate(memoryAdapter(), { plans: [asking] })).toThrow(missing);
    expect(() => orchestrate(memoryAdapter(), { plans: [asking] }, { 'is-open': () => true })).not.toThrow();
  });

  it('ORC-27 fails with two providers of a predicate, and with one that cannot answer', async () => {
    await expect(startApplication({ providers: [IsOpen, IsOpenToo] })).rejects.toThrow(
      'Two step predicates are named "is-open". Names must be unique.',
    );
    await expect(startApplication({ providers: [WithoutMethod] })).rejects.toThrow(
      'The step predicate "is-open" must have a method holds().',
    );
  });

  it('ORC-29 fails with an orchestrator whose steps are wrong, naming step and field', async () => {
    await expect(async () => startApplication({ orchestrators: [WrongDesk] })).rejects.toThrow(`step ask: ${SEQUENCE}`);
  });

  it('ORC-02 fails when an agent has two plans', async () => {
    const [one, two] = ['a', 'b'].map((name) => planOf([{ name, isDefault: true }]));
    const twice = 'The agent "desk" has two step plans. Register one plan per agent.';
    await expect(startApplication({ orchestrators: [one, two] })).rejects.toThrow(twice);
    await expect(startApplication({ orchestrators: [Desk, one] })).rejects.toThrow(twice);
    expect(() => orchestrate(memoryAdapter(), { plans: [one, two] })).toThrow(twice);
    await expect(startApplication({ orchestrators: [one, one] })).resolves.toBeDefined();
  });
});
