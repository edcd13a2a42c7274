import { Inject, Injectable } from '@nestjs/common';
import { MethodMark } from '../common/method-mark.js';
import {
  markOrchestrator,
  orchestratorMark,
  orchestratorName,
  type OrchestratorRef,
} from '../orchestration/orchestrator-ref.js';
import { type IntentDecorator } from './intent-decorator.js';
import { type InitialStateCheck, type OrchestratorDecorator } from './orchestrator-decorator.js';
import { type OrchestratorOptions } from './orchestrator.js';
import { type RouteDecorator } from './route-decorator.js';

const ROUTE = new MethodMark<true>('@Route()', 'agent-sessions:route');
const INTENT = new MethodMark<string>('@Intent()', 'agent-sessions:intent');
const EVALUATE = new MethodMark<true>('@Evaluate()', 'agent-sessions:evaluate');
const SUMMARIZE = new MethodMark<true>('@Summarize()', 'agent-sessions:summarize');

/**
 * Declares a class as an orchestrator. The method with `@Route()` chooses intents; methods with `@Intent()` handle them
 * (BOT-01).
 */
export function Orchestrator<State = Record<string, unknown>>(
  options: OrchestratorOptions<State> & InitialStateCheck<State>,
): OrchestratorDecorator<State> {
  return (target: abstract new (...args: never[]) => object) => {
    Injectable()(target);
    markOrchestrator(target, options);
  };
}

/** Declares the method that routes a turn: it returns the name of an intent, a list of names, or END_TURN. */
export const Route = (): RouteDecorator => (target: object, method: string | symbol, descriptor: PropertyDescriptor) =>
  ROUTE.decorate(true)(target, method, descriptor);

/** Declares a method that handles an intent. @param name default: the method's name */
export const Intent =
  (name?: string): IntentDecorator =>
  (target: object, method: string | symbol, descriptor: PropertyDescriptor) =>
    INTENT.decorate(name ?? String(method))(target, method, descriptor);

/** Declares the method that evaluates each iteration, see `evaluate`. Requires `iterate: true`. */
export const Evaluate = (): MethodDecorator => EVALUATE.decorate(true);

/**
 * Declares the method that writes summaries, see `compaction.summarize`. Without a `compaction` option, conversations
 * are compacted only by command.
 */
export const Summarize = (): MethodDecorator => SUMMARIZE.decorate(true);

/** Injects the handle of an orchestrator that `forFeature` registered. */
export const InjectOrchestrator = (orchestrator: OrchestratorRef): ParameterDecorator & PropertyDecorator =>
  Inject(getOrchestratorToken(orchestrator));

/** Returns the injection token of an orchestrator's handle. */
export function getOrchestratorToken(orchestrator: OrchestratorRef): string {
  return `OrchestratorHandle of ${orchestratorName(orchestrator)}, from SessionsModule.forFeature([...])`;
}

export function orchestratorOptions(target: object): OrchestratorOptions | undefined {
  return orchestratorMark(target);
}

/** The methods of an orchestrator class that have a mark. */
export interface OrchestratorMarks {
  readonly routes: readonly MarkedMethod[];
  /** Each with the name of its intent. */
  readonly intents: readonly (MarkedMethod & { readonly intent: string })[];
  readonly evaluations: readonly MarkedMethod[];
  readonly summarizers: readonly MarkedMethod[];
}

/** A method, and the decorator that marks it. */
export interface MarkedMethod {
  readonly method: string | symbol;
  readonly decorator: string;
}

/** Returns the marks of the class of this prototype, with those that it inherits (FIX-72). */
export function orchestratorMarks(prototype: object): OrchestratorMarks {
  return {
    routes: marked(ROUTE, prototype),
    intents: [...INTENT.of(prototype)].map(([method, intent]) => ({ method, decorator: INTENT.decorator, intent })),
    evaluations: marked(EVALUATE, prototype),
    summarizers: marked(SUMMARIZE, prototype),
  };
}

/** Returns a marked method of any class, to find marks of a class that is not an orchestrator. */
export function anyMark(prototype: object): MarkedMethod | undefined {
  const { routes, intents, evaluations, summarizers } = orchestratorMarks(prototype);
  return [...intents, ...routes, ...evaluations, ...summarizers].at(0);
}

function marked(mark: MethodMark<unknown>, prototype: object): MarkedMethod[] {
  return [...mark.of(prototype).keys()].map((method) => ({ method, decorator: mark.decorator }));
}
