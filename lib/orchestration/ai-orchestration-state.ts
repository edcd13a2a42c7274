import { describeAvailable } from './available-tools.js';
import { indexOfStep, type OrchestrationProgress } from './orchestration-state.js';
import { effectiveStep, type StepPlan } from './step-plan.js';
import { isUnfinished } from './tool-sequence.js';

/** The state for a prompt, without ids, times and counters (ORC-10). */
export interface AIOrchestrationState {
  readonly activeStep?: string;
  readonly stepDescription?: string;
  readonly recentlyUsedTools: readonly string[];
  readonly sequenceIndex: number;
  /** The tools that are allowed now, or patterns with `*`; present if the active step restricts them. */
  readonly allowedTools?: readonly string[];
  readonly deniedTools?: readonly string[];
}

export function toAIState(progress: OrchestrationProgress, plan: StepPlan | undefined): AIOrchestrationState {
  const step = plan && effectiveStep(plan, progress.activeStep);
  const activeStep = step?.name ?? progress.activeStep;
  const sequenceIndex = indexOfStep(progress, activeStep);
  const restricted =
    step !== undefined && (step.availableTools !== undefined || isUnfinished(step.sequence, sequenceIndex));
  const { allowed, denied } = restricted ? describeAvailable(step, sequenceIndex) : { allowed: [], denied: [] };
  return {
    ...(activeStep === undefined ? {} : { activeStep }),
    ...(step?.description === undefined ? {} : { stepDescription: step.description }),
    recentlyUsedTools: progress.recentlyUsedTools,
    sequenceIndex,
    ...(restricted ? { allowedTools: allowed } : {}),
    ...(denied.length > 0 ? { deniedTools: denied } : {}),
  };
}
