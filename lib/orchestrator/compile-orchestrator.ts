import { type Type } from '@nestjs/common';
import { lostMark } from '../common/method-mark.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { type CompactionOptions, type Summarizer } from '../conversation/compaction-policy.js';
import { defineOrchestrator } from './define-orchestrator.js';
import { definitionMessages } from './definition.messages.js';
import { type MarkedMethod, orchestratorMarks, orchestratorOptions } from './orchestrator.decorators.js';
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
 * @param instance of the class, or an object with its marked methods, which replaces it in a test (FIX-79)
 * @throws SessionsConfigurationError
 */
export function compileOrchestrator(
  instance: object,
  type: Type<object>,
  resolve: ResolveProvider,
): OrchestratorDefinition {
  const options = orchestratorOptions(type);
  if (!options) throw new SessionsConfigurationError(`${type.name} must be decorated with @Orchestrator().`);
  const marks = orchestratorMarks(type.prototype as object);
  const bind = (mark: MarkedMethod): Method => boundMethod(instance, type, mark);
  const intents = new Map<string, Method>();
  for (const mark of marks.intents) {
    if (intents.has(mark.intent)) {
      throw new SessionsConfigurationError(definitionMessages.duplicateIntent(options.name, mark.intent));
    }
    intents.set(mark.intent, bind(mark));
  }
  for (const found of [marks.routes, marks.evaluations, marks.summarizers]) {
    if (found.length <= 1) continue;
    throw new SessionsConfigurationError(
      definitionMessages.severalMethods(options.name, found[0].decorator, found.length),
    );
  }
  const route = marks.routes.map(bind).at(0);
  const evaluate = marks.evaluations.map(bind).at(0);
  const summarize = marks.summarizers.map(bind).at(0);
  const { router, memory, compaction, ...rest } = options;
  return defineOrchestrator<State, string>({
    ...rest,
    intents: Object.fromEntries(intents),
    ...(route ? { route } : {}),
    ...(evaluate ? { evaluate } : {}),
    ...(router ? { router: typeof router === 'function' ? resolve(router, 'router') : router } : {}),
    ...(compaction || summarize ? { compaction: withMethod(options.name, compaction, summarize) } : {}),
    ...(memory ? { memory: typeof memory === 'function' ? resolve(memory, 'memory') : memory } : {}),
  });
}

/** Looks up the method at each call, because libraries and tests replace methods of an instance after its creation. */
function boundMethod(instance: object, type: Type<object>, { method, decorator }: MarkedMethod): Method {
  const methods = instance as Record<string | symbol, unknown>;
  if (typeof methods[method] !== 'function') {
    throw instance instanceof type
      ? lostMark(type.name, method, decorator)
      : new SessionsConfigurationError(definitionMessages.missingMethod(type.name, String(method), decorator));
  }
  return ((...args: unknown[]) => (methods[method] as (...args: unknown[]) => unknown)(...args)) as Method;
}

function withMethod(
  orchestrator: string,
  compaction: CompactionOptions = {},
  summarize: Summarizer | undefined,
): CompactionOptions {
  if (!summarize) return compaction;
  if (compaction.summarize === undefined) return { ...compaction, summarize };
  throw new SessionsConfigurationError(definitionMessages.twoSummarizers(orchestrator));
}
