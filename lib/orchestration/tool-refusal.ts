import { hashed } from '../common/log-id.js';
import { describeAvailable, isAvailable } from './available-tools.js';
import { type OrchestrationEffect } from './orchestration-entry.js';
import { indexOfStep, type OrchestrationProgress } from './orchestration-state.js';
import { ToolNotAllowedError } from './orchestration.errors.js';
import { effectiveStep, type StepPlan } from './step-plan.js';

/** What a log says of a use that was recorded though another tool was next; `null` when there was none. */
export function describeMismatch(sessionId: string, effects: readonly OrchestrationEffect[]): string | null {
  const violation = effects.find((effect) => effect.type === 'tool-violated');
  if (!violation) return null;
  const { tool, step, allowed } = violation;
  return `Session ${hashed(sessionId)} used ${tool} in step ${step}, where ${allowed.join(' or ') || 'no tool'} is allowed.`;
}

/** Whether the tool would be allowed if the active step's sequence started over. */
export function wouldPassAnew(plan: StepPlan, progress: OrchestrationProgress, tool: string): boolean {
  const step = effectiveStep(plan, progress.activeStep);
  return step === undefined || isAvailable(step, 0, tool);
}

/** Why the plan does not allow a tool now; `null` when it does. */
export function refusalOf(
  plan: StepPlan,
  sessionId: string,
  progress: OrchestrationProgress,
  tool: string,
): ToolNotAllowedError | null {
  const step = effectiveStep(plan, progress.activeStep);
  const index = indexOfStep(progress, step?.name);
  if (!step || isAvailable(step, index, tool)) return null;
  const { allowed, denied } = describeAvailable(step, index);
  return new ToolNotAllowedError(sessionId, tool, step.name, allowed, denied);
}
