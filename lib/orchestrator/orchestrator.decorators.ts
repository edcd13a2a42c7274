import { Inject, Injectable, SetMetadata, type Type } from '@nestjs/common';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { type OrchestratorDefinition, type OrchestratorOptions } from './orchestrator.js';

const ORCHESTRATOR = Symbol('agent-sessions:orchestrator');
const ROUTE = Symbol('agent-sessions:route');
const INTENT = Symbol('agent-sessions:intent');
const EVALUATE = Symbol('agent-sessions:evaluate');
const SUMMARIZE = Symbol('agent-sessions:summarize');

/** What `forFeature` and `@InjectOrchestrator` take: a class with `@Orchestrator`, or a definition. */
export type OrchestratorRef = Type | Pick<OrchestratorDefinition, 'name'>;

/** Makes a class an orchestrator: one method with `@Route()` decides, methods with `@Intent()` act (BOT-01). */
export function Orchestrator<State = Record<string, unknown>>(options: OrchestratorOptions<State>): ClassDecorator {
  return (target) => {
    Injectable()(target);
    SetMetadata(ORCHESTRATOR, options)(target);
  };
}

/** The method that decides which intents a turn goes to: it returns a name, several, or END. */
export const Route = (): MethodDecorator => SetMetadata(ROUTE, true);

/** A method that acts on a turn. @param name default: the method's name */
export const Intent =
  (name?: string): MethodDecorator =>
  (target, method, descriptor) =>
    SetMetadata(INTENT, name ?? String(method))(target, method, descriptor);

/** The method that looks at what an iteration gave, see `evaluate`; with `iterate: true`. */
export const Evaluate = (): MethodDecorator => SetMetadata(EVALUATE, true);

/**
 * The method that writes summaries, see `compaction.summarize`. Without a `compaction` option conversations are compacted by
 * command only.
 */
export const Summarize = (): MethodDecorator => SetMetadata(SUMMARIZE, true);

/** Injects the handle of an orchestrator that `forFeature` registered. */
export const InjectOrchestrator = (orchestrator: OrchestratorRef): ParameterDecorator & PropertyDecorator =>
  Inject(getOrchestratorToken(orchestrator));

/** The token under which an orchestrator's handle is provided. */
export function getOrchestratorToken(orchestrator: OrchestratorRef): string {
  return `AgentSessionsOrchestrator(${orchestratorName(orchestrator)})`;
}

export function orchestratorName(orchestrator: OrchestratorRef): string {
  if (typeof orchestrator !== 'function') return orchestrator.name;
  const options = orchestratorOptions(orchestrator);
  if (!options) {
    throw new SessionsConfigurationError(
      `${orchestrator.name} is no orchestrator. Decorate the class with @Orchestrator({ name }).`,
    );
  }
  return options.name;
}

export function orchestratorOptions(target: object): OrchestratorOptions | undefined {
  return Reflect.getMetadata(ORCHESTRATOR, target) as OrchestratorOptions | undefined;
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
