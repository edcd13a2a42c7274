import { SetMetadata } from '@nestjs/common';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { type OrchestrationProgress } from './orchestration-state.js';
import { externalConditions, factKey, messageFacts } from './step-conditions.js';
import { type StepPlan } from './step-plan.js';

/** What a predicate is asked about. */
export interface StepPredicateContext {
  readonly agent: string;
  readonly sessionId: string;
  readonly state: OrchestrationProgress;
  /** The user's message, when there is one at hand. */
  readonly message?: string;
}

/** A condition of the application's own: `{ type: 'predicate', value: name }` in a plan. */
export interface StepPredicateHandler {
  /** What it throws fails the turn's attempt, or is the error of who asked outside of a turn; the active step stays. */
  holds(context: StepPredicateContext): boolean | Promise<boolean>;
}

const PREDICATE = Symbol('agent-sessions:step-predicate');

/** Makes a provider answer the conditions of this name (ORC-27). */
export const StepPredicate = (name: string): ClassDecorator => SetMetadata(PREDICATE, name);

export function predicateName(target: object): string | undefined {
  return Reflect.getMetadata(PREDICATE, target) as string | undefined;
}

/** The predicates of this process, by name. */
export class StepPredicates {
  private readonly handlers = new Map<string, StepPredicateHandler>();

  /** @throws SessionsConfigurationError when another one has the name */
  register(name: string, handler: StepPredicateHandler): void {
    const known = this.handlers.get(name);
    if (known && known !== handler) {
      throw new SessionsConfigurationError(`Two step predicates are named ${JSON.stringify(name)}.`);
    }
    if (typeof (handler as Partial<StepPredicateHandler>).holds !== 'function') {
      throw new SessionsConfigurationError(`The step predicate ${JSON.stringify(name)} has no method holds().`);
    }
    this.handlers.set(name, handler);
  }

  /** @throws SessionsConfigurationError naming the plan and the predicate that nobody provides */
  assertKnown(plan: StepPlan): void {
    const missing = externalConditions(plan, 'predicate').find(({ value }) => !this.handlers.has(value));
    if (!missing) return;
    const at = plan.steps.find((step) => externalConditions({ steps: [step] }, 'predicate').includes(missing));
    throw new SessionsConfigurationError(
      `The plan of ${plan.agent}: step ${at!.name}: no provider has @StepPredicate(${JSON.stringify(missing.value)}).`,
    );
  }

  /** The facts of a message that is evaluated now, and those of {@link ask}. */
  async facts(plan: StepPlan, context: StepPredicateContext): Promise<readonly string[]> {
    return [...messageFacts(plan, context.message), ...(await this.ask(plan, context))];
  }

  /** The facts of the plan's predicates. */
  async ask(plan: StepPlan, context: StepPredicateContext): Promise<readonly string[]> {
    const predicates = externalConditions(plan, 'predicate');
    const asked = new Map(predicates.map((condition) => [factKey(condition), condition.value]));
    const answers = await Promise.all(
      [...asked].map(async ([key, name]) => ((await this.handlers.get(name)!.holds(context)) ? [key] : [])),
    );
    return answers.flat();
  }
}

export function hasPredicates(plan: StepPlan): boolean {
  return externalConditions(plan, 'predicate').length > 0;
}
