import { loggedId } from '../common/log-details.js';
import { describeAvailable, isAvailable } from './available-tools.js';
import { type OrchestrationEffect } from './orchestration-entry.js';
import { indexOfStep, type OrchestrationProgress } from './orchestration-state.js';
import { ToolNotAllowedError } from './orchestration.errors.js';
import { effectiveStep, type StepPlan } from './step-plan.js';

/** Returns the log message for a use that was recorded although it was not allowed; otherwise `null`. */
export function describeMismatch(sessionId: string, effects: readonly OrchestrationEffect[]): string | null {
  const violation = effects.find((effect) => effect.type === 'tool-violated');
  if (!violation) return null;
  const { tool, step, allowed } = violation;
  return `Session ${loggedId(sessionId)} used ${tool} in step ${step}. Allowed: ${allowed.join(' or ') || 'no tool'}.`;
}

/** Returns true if the tool would be allowed after a restart of the active step's sequence. */
export function allowedAfterReset(plan: StepPlan, progress: OrchestrationProgress, tool: string): boolean {
  const step = effectiveStep(plan, progress.activeStep);
  return step === undefined || isAvailable(step, 0, tool);
}

/** Returns the error for a tool that the plan does not allow now; `null` if it is allowed. */
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
