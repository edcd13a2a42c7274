import { type OnViolation, type OrchestrationStep } from './orchestration-config.js';

/** A validated plan of an agent: JSON, frozen. Created by `defineStepPlan`. */
export interface StepPlan {
  /** The agent of the plan; part of stored keys. */
  readonly agent: string;
  /** SHA-256 of the steps. Stored entries refer to the plan by it. */
  readonly signature: string;
  readonly steps: readonly OrchestrationStep[];
  readonly onViolation: OnViolation;
  /** The maximum number of tokens per session. */
  readonly tokenBudget?: number;
}

export function stepNamed(plan: Pick<StepPlan, 'steps'>, name: string | undefined): OrchestrationStep | undefined {
  return plan.steps.find((step) => step.name === name);
}

/** Returns the active step. An unknown or missing name falls back to the default step (ORC-25). */
export function effectiveStep(
  plan: Pick<StepPlan, 'steps'>,
  active: string | undefined,
): OrchestrationStep | undefined {
  return stepNamed(plan, active) ?? plan.steps.find(({ isDefault }) => isDefault);
}
