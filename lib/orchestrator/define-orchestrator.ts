import { isIntegerWithin } from '../common/check-input.js';
import { isName } from '../common/ids.js';
import { isPlainObject } from '../common/json.js';
import { missingMethod, type RequiredMethods, withMissing } from '../common/required-methods.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { definitionMessages } from './definition.messages.js';
import {
  type IntentFunction,
  IntentRouter,
  type OrchestratorConfig,
  type OrchestratorDefinition,
  type RouteDecision,
  type RouteFunction,
} from './orchestrator.js';
import { toCompactionPolicy } from '../conversation/compaction-policy.js';
import { toHistoryWindow } from '../conversation/history-window.js';
import { defineStepPlan } from '../orchestration/define-step-plan.js';
import { type StepPlan } from '../orchestration/step-plan.js';
import { type MemoryPort } from './memory-port.js';
import { signatureOf } from './orchestrator-signature.js';
import { checkMigrations } from './state-migrations.js';
import { isStateSchema } from './state-schema.js';

/** The definitions that `defineOrchestrator` created. */
const definitions = new WeakSet<object>();

const MEMORY_METHODS: RequiredMethods<MemoryPort> = { recall: true, remember: true };

/**
 * Defines an orchestrator as a plain object. A class with `@Orchestrator` compiles to the same. Register it with
 * `SessionsModule.forFeature([...])`.
 * @typeParam Intent the names of the intents, for the compiler's check of the route
 * @throws SessionsConfigurationError naming the orchestrator and the invalid field
 */
export function defineOrchestrator<
  State = Record<string, unknown>,
  Intent extends string = string,
  const Decision extends RouteDecision = RouteDecision,
>(config: OrchestratorConfig<State, Intent, Decision>): OrchestratorDefinition<State> {
  return toDefinition(config as unknown as OrchestratorConfig<State>);
}

function toDefinition<State>(config: OrchestratorConfig<State>): OrchestratorDefinition<State> {
  const { name, version = '1' } = config;
  if (!isName(name))
    throw new SessionsConfigurationError(
      `An orchestrator's name must be a string of 1 to 256 characters. Received: ${JSON.stringify(name)}.`,
    );
  const check: Check = (ok, field, rule) => {
    if (!ok) throw new SessionsConfigurationError(`Orchestrator ${name}: ${field} ${rule}`);
  };
  check(isName(version), 'version', 'must be a string of 1 to 256 characters.');
  check(isPlainObject(config.intents), 'intents', 'must be an object of functions by name.');
  const intents = new Map(
    Object.entries(config.intents).filter((entry): entry is [string, IntentFunction<State>] => entry[1] !== undefined),
  );
  check(
    intents.size > 0,
    'intents',
    'must not be empty. Decorate a method of the class with @Intent(), or set `intents`.',
  );
  for (const [intent, handler] of intents) {
    check(isName(intent), `intent ${JSON.stringify(intent)}`, 'must have a name of 1 to 256 characters.');
    check(typeof handler === 'function', `intent ${intent}`, 'must be a function.');
  }
  const { initialState = (): State => ({}) as State, keepCheckpoints = 100, maxStateBytes = 262_144 } = config;
  check(typeof initialState === 'function', 'initialState', 'must be a function that returns the initial state.');
  check(
    keepCheckpoints === 'all' || isIntegerWithin(keepCheckpoints, 1, 1_000_000),
    'keepCheckpoints',
    "must be an integer of 1 or more, or 'all'.",
  );
  check(isIntegerWithin(maxStateBytes, 2, 16_777_216), 'maxStateBytes', 'must be an integer from 2 to 16777216.');
  const { route, routing } = routeOf(config, [...intents.keys()]);
  const plan = planOf(config);
  const historyWindow = toHistoryWindow(name, config.historyWindow);
  const compaction = config.compaction && toCompactionPolicy(name, config.compaction, historyWindow);
  const loop = loopOf(config, intents, check);
  const { stateSchema, memory, memoryScope = 'session', on = {} } = config;
  check(
    stateSchema === undefined || isStateSchema(stateSchema),
    'stateSchema',
    'must be a class or a Standard Schema.',
  );
  const missing = memory === undefined ? undefined : missingMethod(memory, MEMORY_METHODS);
  check(missing === undefined, 'memory', withMissing(definitionMessages.notAMemory(), memory, missing));
  check(isMemoryScope(memoryScope), 'memoryScope', "must be 'session', 'user' or a function of the session.");
  const listeners: unknown[] = isPlainObject(on) ? Object.values(on) : [on];
  check(
    listeners.every((listener) => typeof listener === 'function'),
    'on',
    'must be an object of listeners by event type.',
  );

  const schema = stateSchema === undefined ? {} : { stateSchema };
  const definition = Object.freeze({
    name,
    version,
    signature: signatureOf({ name, intents, routing, historyWindow, ...loop, ...schema }),
    initialState,
    historyWindow,
    ...(compaction ? { compaction } : {}),
    keepCheckpoints,
    maxStateBytes,
    route,
    routing,
    intents,
    ...loop,
    migrations: checkMigrations(name, version, config.migrations ?? []),
    ...schema,
    ...(memory === undefined ? {} : { memory: memory as MemoryPort }),
    memoryScope,
    on,
    ...(plan ? { plan } : {}),
  });
  definitions.add(definition);
  return definition;
}

/** Adds fields to a definition, for code that builds definitions for other parts of the package. */
export function extendDefinition<Extra extends object>(
  definition: OrchestratorDefinition,
  extra: Extra,
): OrchestratorDefinition & Extra {
  const extended = Object.freeze({ ...definition, ...extra });
  definitions.add(extended);
  return extended;
}

/** Checks identity only, because it runs for every provider of the application. */
export function isOrchestratorDefinition(value: unknown): value is OrchestratorDefinition {
  return typeof value === 'object' && value !== null && definitions.has(value);
}

function planOf<State>({
  name: agent,
  steps = [],
  onViolation,
  tokenBudget,
}: OrchestratorConfig<State>): StepPlan | null {
  const plan = defineStepPlan({
    agent,
    steps,
    ...(onViolation === undefined ? {} : { onViolation }),
    ...(tokenBudget === undefined ? {} : { tokenBudget }),
  });
  return plan.steps.length > 0 || tokenBudget !== undefined ? plan : null;
}

type Check = (ok: boolean, field: string, rule: string) => void;

/** Rejects options that require `iterate` when it is false. */
function loopOf<State>(
  { iterate = false, maxIterations, initialIntent, evaluate }: OrchestratorConfig<State>,
  intents: ReadonlyMap<string, unknown>,
  check: Check,
): Pick<OrchestratorDefinition<State>, 'iterate' | 'maxIterations' | 'initialIntent' | 'evaluate'> {
  check(typeof iterate === 'boolean', 'iterate', 'must be a boolean.');
  for (const [field, value] of Object.entries({ maxIterations, initialIntent, evaluate })) {
    check(iterate || value === undefined, field, 'requires iterate: true.');
  }
  check(
    maxIterations === undefined || isIntegerWithin(maxIterations, 1, 1000),
    'maxIterations',
    'must be an integer from 1 to 1000.',
  );
  const known = [...intents.keys()].join(', ');
  check(initialIntent === undefined || intents.has(initialIntent), 'initialIntent', `must be one of ${known}.`);
  check(evaluate === undefined || typeof evaluate === 'function', 'evaluate', 'must be a function.');
  return {
    iterate,
    maxIterations: iterate ? (maxIterations ?? 10) : 1,
    ...(initialIntent === undefined ? {} : { initialIntent }),
    ...(evaluate === undefined ? {} : { evaluate }),
  };
}

function isMemoryScope(scope: unknown): boolean {
  return scope === 'session' || scope === 'user' || typeof scope === 'function';
}

/** Accepts either `route` or `router`. An orchestrator with one intent needs neither. */
function routeOf<State>(
  { name, route, router }: OrchestratorConfig<State>,
  intents: readonly string[],
): { route: RouteFunction<State>; routing: 'route' | 'router' | 'single' } {
  if (route !== undefined && router !== undefined) {
    throw new SessionsConfigurationError(`Orchestrator ${name}: set either route or router, not both.`);
  }
  if (route !== undefined) {
    if (typeof route !== 'function')
      throw new SessionsConfigurationError(`Orchestrator ${name}: route must be a function.`);
    return { route, routing: 'route' };
  }
  if (router !== undefined) {
    if (typeof router !== 'object' || router === null || typeof router.route !== 'function') {
      throw new SessionsConfigurationError(definitionMessages.notARouter(name, IntentRouter.name));
    }
    const names = Object.freeze([...intents]);
    return { route: (turn) => router.route(turn, names), routing: 'router' };
  }
  const [only, ...others] = intents;
  if (only === undefined || others.length > 0) {
    throw new SessionsConfigurationError(definitionMessages.noRoute(name, only ?? ''));
  }
  return { route: () => only, routing: 'single' };
}
