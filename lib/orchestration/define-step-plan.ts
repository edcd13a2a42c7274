import { isName } from '../common/ids.js';
import { deepFreeze, isFields, toJson } from '../common/json.js';
import { unknownKeyRule } from '../common/known-keys.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { sha256 } from '../common/digests.js';
import { assertSteps } from './check-steps.js';
import { type OnViolation, type OrchestrationConfig, type OrchestrationStep } from './orchestration-config.js';
import { type StepPlan } from './step-plan.js';

/** The plans that `defineStepPlan` created. */
const plans = new WeakSet<object>();

const ON_VIOLATION: readonly OnViolation[] = ['reject', 'warn', 'reset'];
const KEYS = ['agent', 'steps', 'onViolation', 'tokenBudget'];

/** The plan of an agent, for `SessionsModule.forFeature([plan])` and for the factories without Nest. */
export interface StepPlanConfig extends OrchestrationConfig {
  /** The agent of the plan; unique in the application. An orchestrator with `steps` has a plan under its own name. */
  readonly agent: string;
}

/**
 * Validates and freezes a step plan. @throws SessionsConfigurationError naming the agent, the step and the invalid
 * field
 */
export function defineStepPlan(config: StepPlanConfig): StepPlan {
  if (!isFields(config)) {
    throw new SessionsConfigurationError('defineStepPlan: the plan must be an object with an agent.');
  }
  const { agent, steps = [], onViolation = 'reject', tokenBudget, ...unknown } = config;
  if (!isName(agent)) {
    throw new SessionsConfigurationError(
      `The agent of a step plan must be a string of 1 to 256 characters. Received: ${JSON.stringify(agent)}.`,
    );
  }
  const fail = (problem: string): never => {
    throw new SessionsConfigurationError(`The plan of ${agent}: ${problem}`);
  };
  const [unknownKey] = Object.keys(unknown);
  if (unknownKey !== undefined) fail(`${unknownKey} ${unknownKeyRule(unknownKey, KEYS)}`);
  assertSteps(steps, fail);
  if (steps.length > 0 && !steps.some(({ isDefault, conditions }) => isDefault || conditions)) {
    fail('no step can become active. Add isDefault: true to the first step, or conditions to a step.');
  }
  if (!ON_VIOLATION.includes(onViolation)) fail(`onViolation must be one of ${ON_VIOLATION.join(', ')}.`);
  if (tokenBudget !== undefined && !(Number.isFinite(tokenBudget) && tokenBudget > 0)) {
    fail('tokenBudget must be a number of tokens greater than 0.');
  }
  // Copied, because stored entries refer to the plan by its signature, so it must not change.
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
