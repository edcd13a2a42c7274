import { type OrchestrationCondition, type OrchestrationStep } from './orchestration-config.js';
import { type OrchestrationProgress } from './orchestration-state.js';
import { type StepPlan } from './step-plan.js';
import { endsWithSequence } from './tool-sequence.js';

/** What conditions ask that the progress does not say. Keys are {@link factKey}s of the conditions that hold. */
export type StepFacts = ReadonlySet<string>;

/** The first step of the plan whose conditions all hold; none: the active one stays (ORC-25). */
export function nextStep(
  plan: Pick<StepPlan, 'steps'>,
  progress: OrchestrationProgress,
  facts: StepFacts,
): OrchestrationStep | undefined {
  return plan.steps.find(
    (step) =>
      !step.isDefault &&
      step.conditions !== undefined &&
      step.conditions.every((condition) => holds(condition, step, progress, facts)),
  );
}

/** Those that only the message can answer, and those that only a provider can, wherever they stand in the plan. */
export function externalConditions<Type extends 'message_matches' | 'predicate'>(
  { steps }: Pick<StepPlan, 'steps'>,
  type: Type,
): readonly Extract<OrchestrationCondition, { type: Type }>[] {
  const all = steps.flatMap(({ isDefault, conditions = [] }) => (isDefault ? [] : conditions.flatMap(flatten)));
  return all.filter(
    (condition): condition is Extract<OrchestrationCondition, { type: Type }> => condition.type === type,
  );
}

/** What the message says about a plan. */
export function messageFacts(plan: Pick<StepPlan, 'steps'>, message: string | undefined): readonly string[] {
  if (message === undefined) return [];
  const holding = externalConditions(plan, 'message_matches').filter(({ value, flags }) =>
    new RegExp(value, flags).test(message),
  );
  return [...new Set(holding.map(factKey))];
}

/** Names a condition whose answer comes from outside. */
export function factKey(condition: Extract<OrchestrationCondition, { type: 'message_matches' | 'predicate' }>): string {
  return condition.type === 'predicate'
    ? `predicate ${condition.value}`
    : `message /${condition.value}/${condition.flags ?? ''}`;
}

function flatten(condition: OrchestrationCondition): OrchestrationCondition[] {
  if (condition.type === 'any_of') return condition.conditions.flatMap(flatten);
  return condition.type === 'not' ? flatten(condition.condition) : [condition];
}

function holds(
  condition: OrchestrationCondition,
  step: OrchestrationStep,
  progress: OrchestrationProgress,
  facts: StepFacts,
): boolean {
  const { toolHistory, recentlyUsedTools, cumulativeTokenUsage } = progress;
  const used = (outcome: 'succeeded' | 'failed'): string[] =>
    toolHistory.filter((use) => use.outcome === outcome).map(({ tool }) => tool);
  switch (condition.type) {
    case 'tool_used':
      return recentlyUsedTools.includes(condition.value);
    case 'sequence_match':
      return step.sequence !== undefined && endsWithSequence(used('succeeded'), step.sequence);
    case 'last_tool':
      return used('succeeded').at(-1) === condition.value;
    case 'tool_count':
      return count(used('succeeded'), condition.value) >= condition.count;
    case 'tool_failed':
      return count(used('failed'), condition.value) >= (condition.count ?? 1);
    case 'tokens_over':
      return cumulativeTokenUsage.totalTokens > condition.value;
    case 'any_of':
      return condition.conditions.some((each) => holds(each, step, progress, facts));
    case 'not':
      return !holds(condition.condition, step, progress, facts);
    case 'message_matches':
    case 'predicate':
      return facts.has(factKey(condition));
  }
}

function count(tools: readonly string[], tool: string): number {
  return tools.filter((each) => each === tool).length;
}
