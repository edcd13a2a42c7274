import { MetadataScanner } from '@nestjs/core';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { type CompactionOptions, type Summarizer } from '../conversation/compaction-policy.js';
import { defineOrchestrator } from './define-orchestrator.js';
import { intentName, isEvaluate, isRoute, isSummarize, orchestratorOptions } from './orchestrator.decorators.js';
import {
  type EvaluateFunction,
  type IntentFunction,
  type OrchestratorDefinition,
  type RouteFunction,
} from './orchestrator.js';

type State = Record<string, unknown>;
type Method = RouteFunction<State> & IntentFunction<State> & EvaluateFunction<State> & Summarizer;

/** Resolves the provider of a class that an option refers to. */
export type ResolveProvider = <T>(type: abstract new (...args: never[]) => T, option: string) => T;

/**
 * Compiles an instance of a class with `@Orchestrator` to a definition.
 * @throws SessionsConfigurationError
 */
export function compileOrchestrator(instance: object, resolve: ResolveProvider): OrchestratorDefinition {
  const options = orchestratorOptions(instance.constructor);
  if (!options)
    throw new SessionsConfigurationError(`${instance.constructor.name} must be decorated with @Orchestrator().`);
  const methods = instance as Record<string, Method>;
  const routes: Method[] = [];
  const evaluations: Method[] = [];
  const summarizers: Method[] = [];
  const intents: Record<string, Method> = {};
  for (const name of new MetadataScanner().getAllMethodNames(Object.getPrototypeOf(instance) as object)) {
    const method = methods[name];
    const intent = intentName(method);
    if (isRoute(method)) routes.push(method.bind(instance));
    if (isEvaluate(method)) evaluations.push(method.bind(instance));
    if (isSummarize(method)) summarizers.push(method.bind(instance));
    if (intent === undefined) continue;
    if (Object.hasOwn(intents, intent)) {
      throw new SessionsConfigurationError(
        `Orchestrator ${options.name}: two methods have the intent ${JSON.stringify(intent)}. Intent names must be unique.`,
      );
    }
    intents[intent] = method.bind(instance);
  }
  const single = { Route: routes, Evaluate: evaluations, Summarize: summarizers };
  for (const [decorator, { length }] of Object.entries(single)) {
    if (length <= 1) continue;
    throw new SessionsConfigurationError(
      `Orchestrator ${options.name} must have at most one method with @${decorator}(). Found: ${length}.`,
    );
  }
  const { router, memory, compaction, ...rest } = options;
  return defineOrchestrator({
    ...rest,
    intents,
    ...(routes.length > 0 ? { route: routes[0] } : {}),
    ...(evaluations.length > 0 ? { evaluate: evaluations[0] } : {}),
    ...(router ? { router: typeof router === 'function' ? resolve(router, 'router') : router } : {}),
    ...(compaction || summarizers.length > 0 ? { compaction: withMethod(options.name, compaction, summarizers) } : {}),
    ...(memory ? { memory: typeof memory === 'function' ? resolve(memory, 'memory') : memory } : {}),
  });
}

function withMethod(
  orchestrator: string,
  compaction: CompactionOptions = {},
  [summarize]: readonly Summarizer[],
): CompactionOptions {
  if (!summarize) return compaction;
  if (compaction.summarize === undefined) return { ...compaction, summarize };
  throw new SessionsConfigurationError(
    `Orchestrator ${orchestrator}: set either compaction.summarize or a method with @Summarize(), not both.`,
  );
}
