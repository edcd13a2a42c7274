import { type OnViolation, type OrchestrationStep } from './orchestration-config.js';

/** A checked plan of an agent: JSON, frozen. `defineStepPlan` makes one. */
export interface StepPlan {
  /** Whose plan it is: part of stored keys. */
  readonly agent: string;
  /** SHA-256 of the steps: what is stored says by which plan it was decided. */
  readonly signature: string;
  readonly steps: readonly OrchestrationStep[];
  readonly onViolation: OnViolation;
  /** Tokens that a session may take in all. */
  readonly tokenBudget?: number;
}

export function stepNamed(plan: Pick<StepPlan, 'steps'>, name: string | undefined): OrchestrationStep | undefined {
  return plan.steps.find((step) => step.name === name);
}

/** The one that is active: an unknown or missing name falls back to the default step (ORC-25). */
export function effectiveStep(
  plan: Pick<StepPlan, 'steps'>,
  active: string | undefined,
): OrchestrationStep | undefined {
  return stepNamed(plan, active) ?? plan.steps.find(({ isDefault }) => isDefault);
}
