import { Inject, Injectable, SetMetadata } from '@nestjs/common';
import {
  markOrchestrator,
  orchestratorMark,
  orchestratorName,
  type OrchestratorRef,
} from '../orchestration/orchestrator-ref.js';
import { type OrchestratorOptions } from './orchestrator.js';

const ROUTE = Symbol('agent-sessions:route');
const INTENT = Symbol('agent-sessions:intent');
const EVALUATE = Symbol('agent-sessions:evaluate');
const SUMMARIZE = Symbol('agent-sessions:summarize');

/**
 * Declares a class as an orchestrator. The method with `@Route()` chooses intents; methods with `@Intent()` handle them
 * (BOT-01).
 */
export function Orchestrator<State = Record<string, unknown>>(options: OrchestratorOptions<State>): ClassDecorator {
  return (target) => {
    Injectable()(target);
    markOrchestrator(target, options);
  };
}

/** Declares the method that routes a turn: it returns the name of an intent, a list of names, or END. */
export const Route = (): MethodDecorator => SetMetadata(ROUTE, true);

/** Declares a method that handles an intent. @param name default: the method's name */
export const Intent =
  (name?: string): MethodDecorator =>
  (target, method, descriptor) =>
    SetMetadata(INTENT, name ?? String(method))(target, method, descriptor);

/** Declares the method that evaluates each iteration, see `evaluate`. Requires `iterate: true`. */
export const Evaluate = (): MethodDecorator => SetMetadata(EVALUATE, true);

/**
 * Declares the method that writes summaries, see `compaction.summarize`. Without a `compaction` option, conversations
 * are compacted only by command.
 */
export const Summarize = (): MethodDecorator => SetMetadata(SUMMARIZE, true);

/** Injects the handle of an orchestrator that `forFeature` registered. */
export const InjectOrchestrator = (orchestrator: OrchestratorRef): ParameterDecorator & PropertyDecorator =>
  Inject(getOrchestratorToken(orchestrator));

/** Returns the injection token of an orchestrator's handle. */
export function getOrchestratorToken(orchestrator: OrchestratorRef): string {
  return `AgentSessionsOrchestrator(${orchestratorName(orchestrator)})`;
}

export function orchestratorOptions(target: object): OrchestratorOptions | undefined {
  return orchestratorMark(target);
}

export function isRoute(method: object): boolean {
  return Reflect.getMetadata(ROUTE, method) === true;
}

export function isEvaluate(method: object): boolean {
  return Reflect.getMetadata(EVALUATE, method) === true;
}

export function intentName(method: object): string | undefined {
  return Reflect.getMetadata(INTENT, method) as string | undefined;
}

export function isSummarize(method: object): boolean {
  return Reflect.getMetadata(SUMMARIZE, method) === true;
}
