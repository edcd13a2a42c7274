import { describeAvailable, isAvailable } from './available-tools.js';
import { indexOfStep, type OrchestrationProgress } from './orchestration-state.js';
import { ToolNotAllowedError } from './orchestration.errors.js';
import { effectiveStep, type StepPlan } from './step-plan.js';

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
