import { MetadataScanner } from '@nestjs/core';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { defineOrchestrator } from './define-orchestrator.js';
import { intentName, isRoute, orchestratorOptions } from './orchestrator.decorators.js';
import {
  type IntentFunction,
  type IntentRouter,
  type OrchestratorDefinition,
  type RouteFunction,
} from './orchestrator.js';

type Method = RouteFunction<Record<string, unknown>> & IntentFunction<Record<string, unknown>>;

/**
 * The definition that an instance of a class with `@Orchestrator` stands for.
 * @param resolveRouter finds the provider of a router class
 * @throws SessionsConfigurationError
 */
export function compileOrchestrator(
  instance: object,
  resolveRouter: (router: abstract new (...args: never[]) => IntentRouter) => IntentRouter,
): OrchestratorDefinition {
  const options = orchestratorOptions(instance.constructor);
  if (!options)
    throw new SessionsConfigurationError(`${instance.constructor.name} is not decorated with @Orchestrator().`);
  const methods = instance as Record<string, Method>;
  const routes: Method[] = [];
  const intents: Record<string, Method> = {};
  for (const name of new MetadataScanner().getAllMethodNames(Object.getPrototypeOf(instance) as object)) {
    const method = methods[name];
    const intent = intentName(method);
    if (isRoute(method)) routes.push(method.bind(instance));
    if (intent === undefined) continue;
    if (Object.hasOwn(intents, intent)) {
      throw new SessionsConfigurationError(
        `Orchestrator ${options.name}: two methods are the intent ${JSON.stringify(intent)}.`,
      );
    }
    intents[intent] = method.bind(instance);
  }
  if (routes.length > 1)
    throw new SessionsConfigurationError(
      `Orchestrator ${options.name}: has several methods with @Route(); it must have one.`,
    );
  const { router, ...rest } = options;
  return defineOrchestrator({
    ...rest,
    intents,
    ...(routes.length > 0 ? { route: routes[0] } : {}),
    ...(router ? { router: typeof router === 'function' ? resolveRouter(router) : router } : {}),
  });
}
