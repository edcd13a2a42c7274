import { matchesMessage } from './message-pattern.js';
import { type OrchestrationCondition, type OrchestrationStep } from './orchestration-config.js';
import { type OrchestrationProgress } from './orchestration-state.js';
import { type StepPlan } from './step-plan.js';
import { endsWithSequence } from './tool-sequence.js';

/**
 * The results of conditions that the progress does not contain. The set contains the {@link factKey}s of conditions
 * that hold.
 */
export type StepFacts = ReadonlySet<string>;

/** The fact that a message is evaluated now. Without it, conditions on the message activate no other step. */
const MESSAGE = 'message';

/**
 * Returns the first step of the plan whose conditions all hold; otherwise, the active step is kept (ORC-25). A
 * condition on the message activates a step only when the message is evaluated. Later it only keeps the active step
 * while it holds (FIX-22).
 */
export function nextStep(
  plan: Pick<StepPlan, 'steps'>,
  progress: OrchestrationProgress,
  facts: StepFacts,
): OrchestrationStep | undefined {
  return plan.steps.find(
    (step) =>
      !step.isDefault &&
      step.conditions !== undefined &&
      step.conditions.every((condition) => holds(condition, step, progress, facts) === true),
  );
}

/** Returns the conditions that depend on the message or on a provider, from the whole plan. */
export function externalConditions<Type extends 'message_matches' | 'predicate'>(
  { steps }: Pick<StepPlan, 'steps'>,
  type: Type,
): readonly Extract<OrchestrationCondition, { type: Type }>[] {
  const all = steps.flatMap(({ isDefault, conditions = [] }) => (isDefault ? [] : conditions.flatMap(flatten)));
  return all.filter(
    (condition): condition is Extract<OrchestrationCondition, { type: Type }> => condition.type === type,
  );
}

/** Returns the facts of a message that is evaluated now. */
export function messageFacts(plan: Pick<StepPlan, 'steps'>, message: string | undefined): readonly string[] {
  if (message === undefined) return [];
  const holding = externalConditions(plan, 'message_matches').filter((condition) => matchesMessage(condition, message));
  return [MESSAGE, ...new Set(holding.map(factKey))];
}

/** Returns the facts for later in the turn, when conditions on the message activate no other step any more. */
export function afterwards(facts: readonly string[]): readonly string[] {
  return facts.filter((fact) => fact !== MESSAGE);
}

/** Returns the key of a condition that is evaluated outside. */
export function factKey(condition: Extract<OrchestrationCondition, { type: 'message_matches' | 'predicate' }>): string {
  return condition.type === 'predicate'
    ? `predicate ${condition.value}`
    : `message /${condition.value}/${condition.flags ?? ''}`;
}

/** Returns the conditions that a condition consists of, without `any_of` and `not`. */
export function flatten(condition: OrchestrationCondition): OrchestrationCondition[] {
  if (condition.type === 'any_of') return condition.conditions.flatMap(flatten);
  return condition.type === 'not' ? flatten(condition.condition) : [condition];
}

/** @returns `undefined` if the result depends on a message that is not evaluated now */
function holds(
  condition: OrchestrationCondition,
  step: OrchestrationStep,
  progress: OrchestrationProgress,
  facts: StepFacts,
): boolean | undefined {
  const { toolHistory, recentlyUsedTools, cumulativeTokenUsage } = progress;
  const used = (outcome: 'succeeded' | 'failed'): string[] =>
    // A use without an outcome counts as succeeded.
    toolHistory.filter((use) => (use.outcome === 'failed') === (outcome === 'failed')).map(({ tool }) => tool);
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
    case 'any_of': {
      const answers = condition.conditions.map((each) => holds(each, step, progress, facts));
      return answers.includes(true) || (answers.includes(undefined) ? undefined : false);
    }
    case 'not': {
      const answer = holds(condition.condition, step, progress, facts);
      return answer === undefined ? undefined : !answer;
    }
    case 'message_matches':
      return facts.has(MESSAGE) || step.name === progress.activeStep ? facts.has(factKey(condition)) : undefined;
    case 'predicate':
      return facts.has(factKey(condition));
  }
}

function count(tools: readonly string[], tool: string): number {
  return tools.filter((each) => each === tool).length;
}
