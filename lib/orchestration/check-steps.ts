import { Allow, Equals } from 'class-validator';
import { Must, MustBeBoolean, MustBeInteger, MustBeName, Optional, validateInput } from '../common/check-input.js';
import { isName } from '../common/ids.js';
import { patternProblem } from './message-pattern.js';
import { type ConditionType, type OrchestrationStep, type SequenceItem } from './orchestration-config.js';
import { TOOL_HISTORY } from './orchestration-state.js';
import { isPermitted } from './available-tools.js';
import { orchestrationMessages } from './orchestration.messages.js';
import { isOptional, nextTools, toolsOf } from './tool-sequence.js';

/** The maximum number of steps, because every tool use evaluates all of them. */
const MAX_STEPS = 200;

class ToolsInput {
  @Optional()
  @Must(isPatterns, 'must be a non-empty list of tool names. A name may begin and end with *.')
  allowed?: string[];

  @Optional()
  @Must(isPatterns, 'must be a non-empty list of tool names. A name may begin and end with *.')
  denied?: string[];
}

class StepInput {
  @MustBeName()
  name!: string;

  @Optional()
  @Must((value) => typeof value === 'string', 'must be a string.')
  description?: string;

  @Optional()
  @MustBeBoolean()
  isDefault?: boolean;

  @Optional()
  @Must(isList, 'must be a non-empty list of conditions.')
  conditions?: unknown[];

  @Allow()
  availableTools?: unknown;

  @Optional()
  @Must(isSequence, 'must be a non-empty list of tool names, { anyOf: [names] } and { optional: name }.')
  sequence?: SequenceItem[];

  @Optional()
  @MustBeName()
  onComplete?: string;

  @Optional()
  @Must(isNames, 'must be a non-empty list of tool names.')
  resetSequenceOn?: string[];
}

class TypedInput {
  @Allow()
  type!: string;
}

class ToolInput extends TypedInput {
  @MustBeName()
  value!: string;
}

class ToolCountInput extends ToolInput {
  @MustBeInteger(1, TOOL_HISTORY)
  count!: number;
}

class ToolFailedInput extends ToolInput {
  @Optional()
  @MustBeInteger(1, TOOL_HISTORY)
  count?: number;
}

class MessageInput extends TypedInput {
  @Must((value) => typeof value === 'string', 'must be a regular expression as a string.')
  value!: string;

  @Optional()
  @Must(
    (value) => typeof value === 'string' && /^(?!.*(.).*\1)[imsu]*$/.test(value),
    'must contain only the letters imsu, each at most once.',
  )
  flags?: string;
}

class TokensInput extends TypedInput {
  @Must((value) => Number.isFinite(value) && (value as number) >= 0, 'must be a number of tokens, 0 or more.')
  value!: number;
}

class AnyOfInput extends TypedInput {
  @Must(isList, 'must be a non-empty list of conditions.')
  conditions!: unknown[];
}

class NotInput extends TypedInput {
  @Allow()
  condition!: unknown;
}

class SequenceMatchInput extends TypedInput {
  @Equals('sequence_match')
  override type!: 'sequence_match';
}

const CONDITIONS: Readonly<Record<ConditionType, new () => TypedInput>> = {
  tool_used: ToolInput,
  sequence_match: SequenceMatchInput,
  last_tool: ToolInput,
  tool_count: ToolCountInput,
  tool_failed: ToolFailedInput,
  message_matches: MessageInput,
  tokens_over: TokensInput,
  any_of: AnyOfInput,
  not: NotInput,
  predicate: ToolInput,
};

type Fail = (problem: string) => never;

/** @param fail throws an error that names the step, the field, and the allowed values */
export function assertSteps(steps: unknown, fail: Fail): asserts steps is readonly OrchestrationStep[] {
  if (!Array.isArray(steps)) fail('steps must be a list of steps.');
  const list = steps as OrchestrationStep[];
  if (list.length > MAX_STEPS) fail(`has ${list.length} steps; at most ${MAX_STEPS} are allowed.`);
  const names = new Set<string>();
  list.forEach((step, index) => {
    assertStep(step, index, fail);
    if (names.has(step.name)) fail(`step names must be unique. Duplicate: ${JSON.stringify(step.name)}.`);
    names.add(step.name);
  });
  const defaults = list.filter(({ isDefault }) => isDefault).map(({ name }) => name);
  if (defaults.length > 1) fail(`at most one step may have isDefault. Steps with it: ${defaults.join(', ')}.`);
  for (const { name, onComplete } of list) {
    if (onComplete !== undefined && !names.has(onComplete)) {
      fail(orchestrationMessages.unknownNextStep(name, [...names], onComplete));
    }
  }
}

function assertStep(step: OrchestrationStep, index: number, fail: Fail): void {
  const name = isName((step as Partial<OrchestrationStep> | null)?.name) ? step.name : `${index + 1}`;
  const failHere = (problem: string): never => fail(`step ${name}: ${problem}`);
  check(StepInput, step, '', failHere);
  const { conditions = [], availableTools, sequence, onComplete, resetSequenceOn } = step;
  if (availableTools !== undefined) check(ToolsInput, availableTools, 'availableTools', failHere);
  conditions.forEach((condition, at) => assertCondition(condition, `conditions[${at}]`, step, failHere));
  if (sequence === undefined) {
    if (onComplete !== undefined) failHere('onComplete requires a sequence.');
    if (resetSequenceOn !== undefined) failHere('resetSequenceOn requires a sequence.');
    return;
  }
  if (isOptional(sequence[sequence.length - 1])) {
    failHere('sequence must not end with an optional tool, because its end could not be determined.');
  }
  sequence.forEach((item, at) => {
    if (!toolsOf(item).some((tool) => isPermitted(step, tool))) {
      const tools = toolsOf(item).join(' or ');
      failHere(`sequence[${at}] is ${tools}, which availableTools does not allow. Allow it, or remove it.`);
    }
    const next = nextTools(sequence, at);
    if (new Set(next).size < next.length) {
      failHere(`sequence[${at}] is ambiguous: ${next.join(', ')} may come next. Use different tools.`);
    }
  });
  if (resetSequenceOn !== undefined) assertResets(step, sequence, resetSequenceOn, failHere);
}

function assertResets(
  step: OrchestrationStep,
  sequence: readonly SequenceItem[],
  resetSequenceOn: readonly string[],
  fail: Fail,
): void {
  const start = sequence.findIndex((item) => !isOptional(item));
  const later = new Set(sequence.slice(start + 1).flatMap(toolsOf));
  resetSequenceOn.forEach((tool, at) => {
    if (!isPermitted(step, tool)) fail(orchestrationMessages.resetNotAllowed(at, tool));
    if (later.has(tool)) fail(orchestrationMessages.resetInSequence(at, tool));
  });
}

function assertCondition(condition: unknown, path: string, step: OrchestrationStep, fail: Fail): void {
  const type = (condition as { readonly type?: unknown } | null)?.type;
  if (typeof type !== 'string' || !Object.hasOwn(CONDITIONS, type)) {
    fail(`${path}.type must be one of ${Object.keys(CONDITIONS).join(', ')}. Received: ${JSON.stringify(type)}.`);
  }
  const checked = check(CONDITIONS[type as ConditionType], condition, path, fail);
  if (checked instanceof AnyOfInput) {
    checked.conditions.forEach((each, at) => assertCondition(each, `${path}.conditions[${at}]`, step, fail));
  }
  const problem = checked instanceof MessageInput ? patternProblem(checked.value, checked.flags) : null;
  if (problem !== null) fail(`${path}.value ${problem}`);
  if (checked instanceof NotInput) assertCondition(checked.condition, `${path}.condition`, step, fail);
  if (checked instanceof SequenceMatchInput) assertMatchable(step, path, fail);
}

function assertMatchable({ sequence }: OrchestrationStep, path: string, fail: Fail): void {
  if (sequence === undefined)
    return fail(`${path} is sequence_match, but the step has no sequence. Add one to the step.`);
  const uses = sequence.filter((item) => !isOptional(item)).length;
  if (uses > TOOL_HISTORY) fail(orchestrationMessages.sequenceTooLong(path, uses, TOOL_HISTORY));
}

function check<T extends object>(type: new () => T, input: unknown, path: string, fail: Fail): T {
  const checked = validateInput(type, input, path);
  if ('value' in checked) return checked.value;
  return fail(`${checked.problem.path} ${checked.problem.rule}`.trim());
}

function isList(value: unknown): value is unknown[] {
  return Array.isArray(value) && value.length > 0;
}

function isNames(value: unknown): boolean {
  return isList(value) && value.every(isName);
}

function isPatterns(value: unknown): boolean {
  return isList(value) && value.every((pattern) => isName(pattern) && !pattern.slice(1, -1).includes('*'));
}

function isSequence(value: unknown): boolean {
  return isList(value) && value.every(isSequenceItem);
}

function isSequenceItem(item: unknown): boolean {
  if (isName(item)) return true;
  if (typeof item !== 'object' || item === null || Object.keys(item).length !== 1) return false;
  if ('anyOf' in item)
    return isNames(item.anyOf) && new Set(toolsOf(item as SequenceItem)).size === toolsOf(item as SequenceItem).length;
  return 'optional' in item && isName(item.optional);
}
