import { isInSequence, isPermitted } from './available-tools.js';
import { type OrchestrationCondition, type OrchestrationStep } from './orchestration-config.js';
import { flatten } from './step-conditions.js';
import { type StepPlan } from './step-plan.js';
import { toolsOf } from './tool-sequence.js';

/**
 * Returns true if the plan limits the uses of a tool: it can reject the tool, and uses of the tool change what it
 * allows (FIX-88). Only these uses must be admitted in one order by all writers.
 */
export function isLimited({ steps, onViolation }: StepPlan, tool: string): boolean {
  if (onViolation === 'warn') return false;
  return steps.some((step) => canReject(step, tool)) && steps.some((step) => isCounted(step, tool));
}

function canReject(step: OrchestrationStep, tool: string): boolean {
  const { sequence = [] } = step;
  return !isPermitted(step, tool) || sequence.some((_, index) => !isInSequence(step, index, tool));
}

function isCounted(
  { isDefault, conditions = [], sequence = [], resetSequenceOn = [] }: OrchestrationStep,
  tool: string,
): boolean {
  if (resetSequenceOn.includes(tool) || sequence.some((item) => toolsOf(item).includes(tool))) return true;
  return !isDefault && conditions.flatMap(flatten).some((condition) => dependsOn(condition, tool));
}

function dependsOn(condition: OrchestrationCondition, tool: string): boolean {
  switch (condition.type) {
    case 'tool_used':
    case 'tool_count':
    case 'tool_failed':
      return condition.value === tool;
    case 'message_matches':
    case 'tokens_over':
      return false;
    default:
      // Depends on the uses of all tools.
      return true;
  }
}
