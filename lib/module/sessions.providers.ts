import { type Provider } from '@nestjs/common';
import { CheckpointStore } from '../ledger/checkpoint.store.js';
import { StateEvents } from '../http/state/state-events.js';
import { OrchestrationEvents } from '../orchestration/orchestration-events.js';
import { OrchestrationService } from '../orchestration/orchestration.service.js';
import { OrchestrationStateManager } from '../orchestration/orchestration-state-manager.service.js';
import { StepSequencer } from '../orchestration/step-sequencer.service.js';
import { OrchestratorEvents } from '../orchestrator/orchestrator-events.js';
import { SessionRecords } from '../records/session-records.service.js';
import { AffinityResolver } from '../session/affinity-resolver.js';
import { SessionEvents } from '../session/session-events.js';
import { SessionStore } from '../session/session-store.service.js';
import { SessionsLifecycle } from './sessions.lifecycle.js';
import { PRINCIPAL_RESOLVER, SESSIONS_ADAPTER, TURN_QUEUE } from '../common/sessions.tokens.js';
import { SessionStateService } from '../state/session-state.service.js';
import { SessionGuard } from '../transport/session.guard.js';
import { ToolGuard } from '../transport/tool.guard.js';
import { TurnService } from '../turn/turn.service.js';
import { CONVERSATION_PROVIDERS } from './conversation.providers.js';
import { FOUNDATION_PROVIDERS } from './foundation.providers.js';
import { ORCHESTRATION_PROVIDERS } from './orchestration.providers.js';
import { ORCHESTRATOR_PROVIDERS } from './orchestrator.providers.js';
import { SESSION_PROVIDERS } from './session.providers.js';
import { STATE_PROVIDERS } from './state.providers.js';
import { TRANSPORT_PROVIDERS } from './transport.providers.js';
import { TURN_PROVIDERS } from './turn.providers.js';

/** What applications inject; the rest is private. */
export const PUBLIC_TOKENS = [
  SessionStore,
  SessionEvents,
  SessionRecords,
  TurnService,
  OrchestrationStateManager,
  StepSequencer,
  OrchestrationService,
  OrchestrationEvents,
  OrchestratorEvents,
  SessionStateService,
  StateEvents,
  CheckpointStore,
  AffinityResolver,
  SessionGuard,
  ToolGuard,
  SESSIONS_ADAPTER,
  TURN_QUEUE,
  PRINCIPAL_RESOLVER,
];

/** How the parts are put together. */
export const SESSIONS_PROVIDERS: Provider[] = [
  ...FOUNDATION_PROVIDERS,
  ...SESSION_PROVIDERS,
  ...ORCHESTRATION_PROVIDERS,
  ...STATE_PROVIDERS,
  ...CONVERSATION_PROVIDERS,
  ...ORCHESTRATOR_PROVIDERS,
  ...TURN_PROVIDERS,
  ...TRANSPORT_PROVIDERS,
  SessionsLifecycle,
];
