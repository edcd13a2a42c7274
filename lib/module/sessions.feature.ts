import { type FactoryProvider, type Provider, type Type } from '@nestjs/common';
import { unknownKeyRule } from '../common/known-keys.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { isStepPlan } from '../orchestration/define-step-plan.js';
import { type StepPlan } from '../orchestration/step-plan.js';
import { isOrchestratorDefinition } from '../orchestrator/define-orchestrator.js';
import { handleProvider, LISTED_BY_FEATURE, OrchestratorFeature } from '../orchestrator/orchestrator-feature.js';
import { featureProvider } from '../orchestrator/orchestrator.explorer.js';
import { type OrchestratorRef } from '../orchestration/orchestrator-ref.js';
import { type SessionManagerDefinition } from '../state/session-manager.js';
import { isSessionManagerDefinition, sessionManagerProvider } from '../state/session-manager-feature.js';
import { isStateModuleClass, type StateModule } from '../state/state-module.js';
import { moduleMessages } from './module.messages.js';

/** An item of a list passed to `forFeature`: an orchestrator, a step plan of another agent, or a session manager. */
export type FeatureRef = OrchestratorRef | StepPlan | SessionManagerDefinition;

/** The options of `forFeature`, by kind. */
export interface FeatureOptions {
  /** Classes with `@Orchestrator()`, and definitions. Default: none. */
  readonly orchestrators?: readonly OrchestratorRef[];
  /** Step plans of agents that are not orchestrators. Default: none. */
  readonly plans?: readonly StepPlan[];
  /** Custom session states, from `defineSessionManager`. Default: none. */
  readonly sessionManagers?: readonly SessionManagerDefinition[];
  /** Classes with `@SessionStateModule()`. Default: none. */
  readonly stateModules?: readonly Type<StateModule>[];
}

const KINDS: readonly string[] = ['orchestrators', 'plans', 'sessionManagers', 'stateModules'];

/**
 * Returns the providers of a `forFeature` module; `exported` are the handles and session managers that it exports.
 * @throws SessionsConfigurationError for values of any other kind
 */
export function featureProviders(features: readonly FeatureRef[] | FeatureOptions): {
  readonly own: Provider[];
  readonly exported: FactoryProvider[];
} {
  const { items, stateModules } = isList(features) ? { items: features, stateModules: [] } : byKind(features);
  const orchestrators: OrchestratorRef[] = [];
  const plans: StepPlan[] = [];
  const managers: SessionManagerDefinition[] = [];
  for (const [index, item] of items.entries()) {
    if (isStateModuleClass(item)) {
      throw new SessionsConfigurationError(moduleMessages.misplacedStateModule(item.name));
    }
    if (typeof item === 'function' || isOrchestratorDefinition(item)) orchestrators.push(item);
    else if (isStepPlan(item)) plans.push(item);
    else if (isSessionManagerDefinition(item)) managers.push(item);
    else throw new SessionsConfigurationError(moduleMessages.unknownItem(index, item === undefined));
  }
  const exported = [...orchestrators.map(handleProvider), ...managers.map(sessionManagerProvider)];
  return {
    own: [
      featureProvider(new OrchestratorFeature(orchestrators, plans, managers, stateModules), exported),
      ...[...orchestrators, ...stateModules].filter(isClass).map(placeholder),
    ],
    exported,
  };
}

/** Lets tests replace the class, see {@link LISTED_BY_FEATURE}. */
function placeholder(type: Type): Provider {
  return { provide: type, useValue: LISTED_BY_FEATURE };
}

function isClass(item: unknown): item is Type {
  return typeof item === 'function';
}

function isList(features: readonly FeatureRef[] | FeatureOptions): features is readonly FeatureRef[] {
  return Array.isArray(features);
}

function byKind(options: FeatureOptions): { items: readonly FeatureRef[]; stateModules: readonly Type<StateModule>[] } {
  const unknown = Object.keys(options).find((key) => !KINDS.includes(key));
  if (unknown !== undefined) {
    throw new SessionsConfigurationError(`SessionsModule.forFeature: ${unknown} ${unknownKeyRule(unknown, KINDS)}`);
  }
  const { orchestrators = [], plans = [], sessionManagers = [], stateModules = [] } = options;
  const invalid = stateModules.findIndex((item) => !isStateModuleClass(item));
  if (invalid !== -1) throw new SessionsConfigurationError(moduleMessages.notAStateModule(invalid));
  return { items: [...orchestrators, ...plans, ...sessionManagers], stateModules };
}
