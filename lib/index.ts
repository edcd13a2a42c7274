/**
 * A NestJS module that stores the sessions of agents and chat applications, and runs each user message as a durable
 * turn. The turns of a session run one at a time, in the order in which they were accepted. If a process crashes,
 * another one runs its turn again and uses the stored results of finished steps. Every turn settles exactly once: one
 * commit stores its reply, its messages and its state.
 *
 * Applications import `SessionsModule` and write orchestrators, which answer turns. The types of the controllers and the
 * control plane are in `nestjs-agent-sessions/http`, and the API for authors of stores and queues in `/adapter`. Types
 * that are not exported are reached from those that contain them, such as `TurnReport['iterations'][number]`.
 *
 * @packageDocumentation
 * @module nestjs-agent-sessions
 */

// Most used
export { SessionsModule } from './module/sessions.module.js';
export { InjectOrchestrator, Intent, Orchestrator } from './orchestrator/orchestrator.decorators.js';
export { type TurnContext } from './orchestrator/turn-context.js';
export { reply, TurnOutcome } from './orchestrator/turn-outcome.js';
export { OrchestratorHandle } from './orchestrator/orchestrator-handle.js';
export { TurnService } from './turn/turn.service.js';
export { type Turn } from './ledger/turn.js';
export { SessionStore } from './session/session-store.service.js';
export { type Session } from './ledger/session.js';
export { type ConversationMessage, type MessageDraft } from './ledger/message.js';
export { CurrentSession, UseSession } from './transport/session.decorators.js';
export { SessionGuard } from './transport/session.guard.js';
export { UnauthenticatedError } from './transport/transport.errors.js';
export { type SessionsAdapter } from './ledger/sessions.adapter.js';
export { memoryAdapter } from './store/memory/memory-adapter.js';

// The module
export { SESSIONS_ADAPTER, TURN_QUEUE } from './common/sessions.tokens.js';
export { type FeatureOptions } from './module/sessions.feature.js';
export {
  type ProcessRole,
  type SessionsModuleAsyncOptions,
  SessionsModuleOptions,
  type SessionsModuleStatics,
  type SessionsOptionsFactory,
} from './module/sessions.options.js';

// Sessions
export { SessionQuery } from './ledger/session-query.js';
export {
  SessionConflictError,
  SessionNotFoundError,
  SessionStateError,
  SurfaceConflictError,
  SurfaceLimitError,
} from './ledger/session.errors.js';
export { type SessionState, type SurfacePolicy } from './ledger/session.js';
export { type RecordsOf } from './records/records-of.js';
export { type SessionRecord } from './records/session-record.js';
export { SessionRecords } from './records/session-records.service.js';
export {
  AffinityResolver,
  defaultAffinityResolver,
  type InboundMessage,
  resolveSession,
} from './session/affinity-resolver.js';
export { createSessionStore } from './session/create-session-store.js';
export { type SessionStoreConfig } from './session/session-store.config.js';
export { type SessionEvent, SessionEvents } from './session/session-events.js';
export { type SessionPage } from './session/session-store.service.js';
export { CreateSessionInput } from './session/session.inputs.js';

// Turns
export { CheckpointNotFoundError } from './ledger/checkpoint.errors.js';
export { CheckpointStore } from './ledger/checkpoint.store.js';
export { type Checkpoint } from './ledger/checkpoint.js';
export { HandlerError } from './ledger/handler.error.js';
export { type Lane, type LaneMode } from './ledger/lane.js';
export { type TurnEvent, type TurnEventMessage } from './ledger/turn-event.js';
export {
  IdempotencyConflictError,
  LaneDrainingError,
  LaneFullError,
  NothingToStreamError,
  PermanentTurnError,
  ProcessLimitError,
  SessionBusyError,
  ShuttingDownError,
  TurnCancelledError,
  TurnFailedError,
  TurnNotFoundError,
  TurnReentryError,
  TurnSettledError,
  TurnSupersededError,
  TurnTimeoutError,
  TurnWaitTimeoutError,
} from './ledger/turn.errors.js';
export {
  type CancelMode,
  isTerminal,
  type TurnErrorRecord,
  type TurnInput,
  type TurnReply,
  type TurnStatus,
  type WhenBusy,
} from './ledger/turn.js';
export { LaneService } from './turn/lane.service.js';
export { type TurnResult } from './turn/turn-result.js';
export { TurnStoppedError } from './turn/turn-stopped.error.js';
export { TurnStream } from './turn/turn-stream.js';
export { type EventResponse } from './turn/turn-event-pace.js';
export { ExecuteOptions, SubmitOptions } from './turn/turn.inputs.js';
export { TurnsOptions } from './turn/turn.options.js';

// Orchestrators
export { defineOrchestrator } from './orchestrator/define-orchestrator.js';
export { type Evaluation, type IntentReply } from './orchestrator/evaluation.js';
export { type MemorableTurn, MemoryPort, type MemoryQuery } from './orchestrator/memory-port.js';
export { type OrchestratorEvent, OrchestratorEvents } from './orchestrator/orchestrator-events.js';
export { type OrchestratorTool, OrchestratorToolOptions } from './orchestrator/orchestrator-tool.js';
export { Evaluate, getOrchestratorToken, Route, Summarize } from './orchestrator/orchestrator.decorators.js';
export { OrchestratorDriftError } from './orchestrator/orchestrator.errors.js';
export {
  type IntentResult,
  IntentRouter,
  type OrchestratorConfig,
  type OrchestratorDefinition,
  type RouteDecision,
} from './orchestrator/orchestrator.js';
export { type StateMigration } from './orchestrator/state-migrations.js';
export { type StateSchema } from './orchestrator/state-schema.js';
export { NothingToUndoError } from './orchestrator/time-travel.errors.js';
export { type HistoryEntry } from './orchestrator/time-travel.js';
export {
  type StepInfo,
  TurnContextFactory,
  type TurnModules,
  type TurnTools,
  type TurnUsage,
} from './orchestrator/turn-context.js';
export { type DataOf, END_TURN, turnOutcome } from './orchestrator/turn-outcome.js';
export { type TurnReport } from './orchestrator/turn-report.js';

// Steps and tools
export {
  createOrchestrationService,
  createOrchestrationStateManager,
  createStepSequencer,
} from './module/create-orchestration.js';
export { type AIOrchestrationState } from './orchestration/ai-orchestration-state.js';
export { defineStepPlan, type StepPlanConfig } from './orchestration/define-step-plan.js';
export {
  type ConditionType,
  type OrchestrationCondition,
  type OrchestrationConfig,
  type OrchestrationStep,
  type SequenceItem,
} from './orchestration/orchestration-config.js';
export { type OrchestrationEvent, OrchestrationEvents } from './orchestration/orchestration-events.js';
export { OrchestrationStateManager } from './orchestration/orchestration-state-manager.service.js';
export {
  type OrchestrationProgress,
  type OrchestrationState,
  type ToolUse,
} from './orchestration/orchestration-state.js';
export {
  readOrchestrationFailure,
  TokenBudgetExceededError,
  ToolFailedError,
  ToolNotAllowedError,
} from './orchestration/orchestration.errors.js';
export { OrchestrationOptions } from './orchestration/orchestration.options.js';
export { OrchestrationService } from './orchestration/orchestration.service.js';
export { type OrchestratorRef } from './orchestration/orchestrator-ref.js';
export { type StepPlan } from './orchestration/step-plan.js';
export {
  StepPredicate,
  type StepPredicateContext,
  type StepPredicateHandler,
} from './orchestration/step-predicates.js';
export { StepSequencer } from './orchestration/step-sequencer.service.js';
export { type KeyValueClient, type StorageProvider } from './orchestration/storage-provider.js';

// State of sessions
export { ConversationState } from './state/conversation-state.js';
export { type FlowCheckpoint, FlowState } from './state/flow-state.js';
export { defineSessionManager, getSessionManagerToken, InjectSessionManager } from './state/session-manager-feature.js';
export { type ManagedSession, SessionManager, type SessionManagerDefinition } from './state/session-manager.js';
export { SessionStateService, type StateRedactor } from './state/session-state.service.js';
export { type StatePage } from './state/state-data.js';
export {
  SessionStateModule,
  type StateCompaction,
  type StateDescription,
  type StateHookCall,
  type StateModule,
} from './state/state-module.js';
export { type StateOperationResult } from './state/state-report.js';
export { StateConflictError, StateModuleError } from './state/state.errors.js';
export { StateOptions } from './state/state.options.js';
export { TaskStates } from './state/task-states.js';
export { TaskError } from './state/task.errors.js';
export { type TaskRecord } from './state/task.js';
export { type ToolEntry, ToolState } from './state/tool-state.js';

// The conversation
export { type CompactionEvent } from './conversation/compaction-events.js';
export {
  type CompactionInfo,
  type CompactionOptions,
  type CompactionPolicy,
  type Summarizer,
  type Summary,
} from './conversation/compaction-policy.js';
export { type CompactionResult } from './conversation/compaction-run.js';
export { CompactionError } from './conversation/compaction.errors.js';
export { type TokenCounter } from './conversation/token-counter.js';
export { type WindowFunction } from './conversation/window.js';
export { type MessagePart, type MessageRole, type MessageToolCall } from './ledger/message.js';

// Guards and decorators
export { CurrentOrchestrationState } from './transport/current-orchestration-state.decorator.js';
export { CurrentTurn } from './transport/current-turn.decorator.js';
export { type Principal, type PrincipalResolver, signedInUser } from './transport/principal.js';
export { AllowAnonymousSession, SessionId } from './transport/session.decorators.js';
export { type SessionsErrorBody } from './common/sessions-error-body.js';
export { SessionsExceptionFilter } from './transport/sessions-exception.filter.js';
export { SingleUserGuard } from './transport/single-user.guard.js';
export { ToolUseInterceptor } from './transport/tool-use.interceptor.js';
export { RequireTool } from './transport/tool.decorators.js';
export { ToolGuard } from './transport/tool.guard.js';

// Stores and queues
export { type SessionStoreAdapter } from './ledger/session.store.js';
export { type TurnQueue } from './ledger/turn-queue.js';
export { SweepOptions } from './maintenance/sweep.options.js';
export { InMemorySessionStoreAdapter } from './store/memory/memory-adapter.js';

// Everywhere
export { type JsonObject, type JsonValue } from './common/json.js';
export {
  InvalidInputError,
  SessionsConfigurationError,
  SessionsError,
  StateSerializationError,
  StoreRejectedError,
  StoreUnavailableError,
  TooLargeError,
  UnreadableRecordError,
} from './common/sessions.error.js';
export { type TokenCounts, type TokenCountsInput } from './common/token-counts.js';
