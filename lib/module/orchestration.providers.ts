import { type Provider } from '@nestjs/common';
import { provide, provideClass } from '../common/nest-providers.js';
import { orchestrationParts } from '../orchestration/agent-orchestration.js';
import { OrchestrationAgents } from '../orchestration/orchestration-agents.js';
import { OrchestrationEvents } from '../orchestration/orchestration-events.js';
import { OrchestrationService } from '../orchestration/orchestration.service.js';
import { OrchestrationStateManager } from '../orchestration/orchestration-state-manager.service.js';
import { StepPredicates } from '../orchestration/step-predicates.js';
import { StepSequencer } from '../orchestration/step-sequencer.service.js';
import { ownedState } from '../state/owned-state.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { type SessionsSettings } from './sessions.settings.js';
import { OBSERVED_ADAPTER, SESSIONS_SETTINGS } from '../common/sessions.tokens.js';

/** Steps and tools. Injected services speak of the only agent, or of the one that `of()` names. */
export const ORCHESTRATION_PROVIDERS: Provider[] = [
  OrchestrationEvents,
  StepPredicates,
  provide(
    OrchestrationAgents,
    [OBSERVED_ADAPTER, SESSIONS_SETTINGS, OrchestrationEvents],
    (stores: SessionsAdapter, { orchestration }: SessionsSettings, events: OrchestrationEvents) =>
      new OrchestrationAgents(orchestrationParts(ownedState(stores), orchestration, events, stores.state)),
  ),
  provideClass(OrchestrationStateManager, [OrchestrationAgents]),
  provideClass(StepSequencer, [OrchestrationAgents]),
  provideClass(OrchestrationService, [OrchestrationAgents, StepPredicates]),
];
