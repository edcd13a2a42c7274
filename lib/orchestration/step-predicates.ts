import { SetMetadata } from '@nestjs/common';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { type OrchestrationProgress } from './orchestration-state.js';
import { orchestrationMessages } from './orchestration.messages.js';
import { externalConditions, factKey, messageFacts } from './step-conditions.js';
import { type StepPlan } from './step-plan.js';

/** The argument of a predicate. */
export interface StepPredicateContext {
  readonly agent: string;
  readonly sessionId: string;
  readonly state: OrchestrationProgress;
  /** The user's message, if available. */
  readonly message?: string;
}

/** A custom condition of the application: `{ type: 'predicate', value: name }` in a plan. */
export interface StepPredicateHandler {
  /**
   * Evaluates the condition. An error fails the turn's attempt, or rejects the call outside of a turn; the active step
   * is kept.
   */
  holds(context: StepPredicateContext): boolean | Promise<boolean>;
}

const PREDICATE = Symbol('agent-sessions:step-predicate');

/** Makes a provider evaluate the conditions with this name (ORC-27). */
export const StepPredicate = (name: string): ClassDecorator => SetMetadata(PREDICATE, name);

export function predicateName(target: object): string | undefined {
  return Reflect.getMetadata(PREDICATE, target) as string | undefined;
}

/** The predicates of this process, by name. */
export class StepPredicates {
  private readonly handlers = new Map<string, StepPredicateHandler>();

  /** @throws SessionsConfigurationError if another predicate has the name */
  register(name: string, handler: StepPredicateHandler): void {
    const known = this.handlers.get(name);
    if (known && known !== handler) {
      throw new SessionsConfigurationError(
        `Two step predicates are named ${JSON.stringify(name)}. Names must be unique.`,
      );
    }
    if (typeof (handler as Partial<StepPredicateHandler>).holds !== 'function') {
      throw new SessionsConfigurationError(`The step predicate ${JSON.stringify(name)} must have a method holds().`);
    }
    this.handlers.set(name, handler);
  }

  /** @throws SessionsConfigurationError naming the plan and the predicate that no provider implements */
  assertKnown(plan: StepPlan): void {
    const missing = externalConditions(plan, 'predicate').find(({ value }) => !this.handlers.has(value));
    if (!missing) return;
    const at = plan.steps.find((step) => externalConditions({ steps: [step] }, 'predicate').includes(missing));
    throw new SessionsConfigurationError(orchestrationMessages.missingPredicate(plan.agent, at!.name, missing.value));
  }

  /** Returns the facts of a message that is evaluated now, and of the predicates. */
  async facts(plan: StepPlan, context: StepPredicateContext): Promise<readonly string[]> {
    return [...messageFacts(plan, context.message), ...(await this.ask(plan, context))];
  }

  /** Returns the facts of the plan's predicates. */
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
