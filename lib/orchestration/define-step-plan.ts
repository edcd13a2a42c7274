import { isName } from '../common/ids.js';
import { deepFreeze, toJson } from '../common/json.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { sha256 } from '../common/sha-256.js';
import { assertSteps } from './check-steps.js';
import { type OnViolation, type OrchestrationConfig, type OrchestrationStep } from './orchestration-config.js';
import { type StepPlan } from './step-plan.js';

/** What `defineStepPlan` has made. */
const plans = new WeakSet<object>();

const ON_VIOLATION: readonly OnViolation[] = ['reject', 'warn', 'reset'];

/** The plan of an agent, for `SessionsModule.forFeature([plan])` and for the factories without Nest. */
export interface StepPlanConfig extends OrchestrationConfig {
  /** Whose plan it is; unique in the application. An orchestrator with `steps` has a plan under its own name. */
  readonly agent: string;
}

/** @throws SessionsConfigurationError naming the agent, the step and the field that is wrong */
export function defineStepPlan({ agent, ...config }: StepPlanConfig): StepPlan {
  if (!isName(agent)) {
    throw new SessionsConfigurationError(
      `The agent of a step plan is ${JSON.stringify(agent)}; it must be a text of 1 to 256 characters.`,
    );
  }
  const fail = (problem: string): never => {
    throw new SessionsConfigurationError(`The plan of ${agent}: ${problem}`);
  };
  const { steps = [], onViolation = 'reject', tokenBudget, ...unknown } = config;
  const [stranger] = Object.keys(unknown);
  if (stranger !== undefined) fail(`${stranger} is not a known key.`);
  assertSteps(steps, fail);
  if (steps.length > 0 && !steps.some(({ isDefault, conditions }) => isDefault || conditions)) {
    fail(
      'no step can become active; one must have isDefault: true, or conditions. Add isDefault: true to the first step.',
    );
  }
  if (!ON_VIOLATION.includes(onViolation)) fail(`onViolation must be one of ${ON_VIOLATION.join(', ')}.`);
  if (tokenBudget !== undefined && !(Number.isFinite(tokenBudget) && tokenBudget > 0)) {
    fail('tokenBudget must be a number of tokens above 0.');
  }
  // A copy: what is stored says which plan it was decided by, so that must not change under its signature.
  const copy = toJson(steps, 'steps') as unknown as readonly OrchestrationStep[];
  const plan = deepFreeze({
    agent,
    signature: sha256(JSON.stringify(copy)),
    steps: copy,
    onViolation,
    ...(tokenBudget === undefined ? {} : { tokenBudget }),
  });
  plans.add(plan);
  return plan;
}

export function isStepPlan(value: unknown): value is StepPlan {
  return typeof value === 'object' && value !== null && plans.has(value);
}
