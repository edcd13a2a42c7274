import { PRINCIPAL_RESOLVER, SESSIONS_ADAPTER, TURN_QUEUE } from '../common/sessions.tokens.js';
import { StateEvents } from '../http/state/state-events.js';
import { CheckpointStore } from '../ledger/checkpoint.store.js';
import { OrchestrationEvents } from '../orchestration/orchestration-events.js';
import { OrchestrationStateManager } from '../orchestration/orchestration-state-manager.service.js';
import { OrchestrationService } from '../orchestration/orchestration.service.js';
import { StepSequencer } from '../orchestration/step-sequencer.service.js';
import { OrchestratorEvents } from '../orchestrator/orchestrator-events.js';
import { SessionRecords } from '../records/session-records.service.js';
import { AffinityResolver } from '../session/affinity-resolver.js';
import { SessionEvents } from '../session/session-events.js';
import { SessionStore } from '../session/session-store.service.js';
import { SessionStateService } from '../state/session-state.service.js';
import { SessionGuard } from '../transport/session.guard.js';
import { ToolGuard } from '../transport/tool.guard.js';
import { TurnService } from '../turn/turn.service.js';

/** The tokens that applications may inject. All others are private. */
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
