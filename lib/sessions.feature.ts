import { type FactoryProvider, type Provider } from '@nestjs/common';
import { SessionsConfigurationError } from './common/sessions.error.js';
import { isStepPlan } from './orchestration/define-step-plan.js';
import { type StepPlan } from './orchestration/step-plan.js';
import { isOrchestratorDefinition } from './orchestrator/define-orchestrator.js';
import { handleProvider, OrchestratorFeature } from './orchestrator/orchestrator-feature.js';
import { type OrchestratorRef } from './orchestrator/orchestrator.decorators.js';
import {
  isSessionManagerDefinition,
  type SessionManagerDefinition,
  sessionManagerProvider,
} from './state/session-manager-feature.js';

/** What `forFeature` takes: orchestrators, step plans of agents that are none, and session managers. */
export type FeatureRef = OrchestratorRef | StepPlan | SessionManagerDefinition;

/** @throws SessionsConfigurationError for something that is none of these */
export function featureProviders(features: readonly FeatureRef[]): {
  readonly own: Provider[];
  readonly exported: FactoryProvider[];
} {
  const orchestrators: OrchestratorRef[] = [];
  const plans: StepPlan[] = [];
  const managers: SessionManagerDefinition[] = [];
  for (const [index, item] of features.entries()) {
    if (typeof item === 'function' || isOrchestratorDefinition(item)) orchestrators.push(item);
    else if (isStepPlan(item)) plans.push(item);
    else if (isSessionManagerDefinition(item)) managers.push(item);
    else throw strange(item, index);
  }
  return {
    own: [{ provide: OrchestratorFeature, useValue: new OrchestratorFeature(orchestrators, plans, managers) }],
    exported: [...orchestrators.map(handleProvider), ...managers.map(sessionManagerProvider)],
  };
}

function strange(item: unknown, index: number): SessionsConfigurationError {
  const what = item === undefined ? 'undefined (perhaps two files import each other)' : 'no orchestrator';
  return new SessionsConfigurationError(
    `SessionsModule.forFeature: item ${index} is ${what}. List classes with @Orchestrator() and what defineOrchestrator(), ` +
      'defineStepPlan() and defineSessionManager() returned.',
  );
}
