// The module
export { type FeatureOptions, type FeatureRef } from './sessions.feature.js';
export { SessionsModule } from './sessions.module.js';
export {
  BackoffOptions,
  OrchestrationOptions,
  type ProcessRole,
  RetryOptions,
  type SessionsModuleAsyncOptions,
  SessionsModuleOptions,
  type SessionsModuleStatics,
  type SessionsOptionsFactory,
  SweepOptions,
  TurnEventsOptions,
  TurnsOptions,
} from './sessions.options.js';
export { SESSIONS_ADAPTER, TURN_QUEUE } from './sessions.tokens.js';

// Sessions
export {
  AffinityResolver,
  defaultAffinityResolver,
  type InboundMessage,
  resolveSession,
} from './session/affinity-resolver.js';
export { compareSessions, decodeCursor, encodeCursor, type SessionCursor } from './session/session.cursor.js';
export { createSessionStore, type SessionStoreConfig } from './session/create-session-store.js';
export {
  SessionConflictError,
  SessionNotFoundError,
  SessionStateError,
  SurfaceConflictError,
  SurfaceLimitError,
} from './session/session.errors.js';
export { CreateSessionInput, RevokeOptions, SessionQuery, SweepLimit } from './session/session.inputs.js';
export {
  type NewSession,
  type Session,
  type SessionChange,
  type SessionLifetime,
  type SessionState,
  type SurfaceChange,
  type SurfacePolicy,
  type SurfaceRules,
} from './session/session.js';
export {
  type SessionEvent,
  type SessionEventOf,
  SessionEvents,
  type SessionEventType,
} from './session/session-events.js';
export { type SessionPage, SessionStore, type SessionStoreSettings } from './session/session-store.service.js';

// Records
export { type RecordsOf } from './records/records-of.js';
export { type SessionRecord } from './records/session-record.js';
export { type ErasedRecords, SessionRecords } from './records/session-records.service.js';

// Turns
export { DrainOptions, LaneListQuery, type LaneScope } from './turn/lane.inputs.js';
export { type Lane, type LaneHead, type LaneMode, type LanePage, type LaneQuery } from './turn/lane.js';
export { type LaneCounts, LaneService } from './turn/lane.service.js';
export * from './turn/turn.errors.js';
export { ExecuteOptions, SubmitOptions, type TurnInputLike, TurnListQuery, WaitOptions } from './turn/turn.inputs.js';
export { type EmittedEvent, type NewTurnEvent, type TurnEvent, type TurnEventMessage } from './turn/turn-event.js';
export { type RecoveryCounts } from './turn/turn-recovery.js';
export { type TurnEnd, type TurnResult } from './turn/turn-result.js';
export { type CommandOptions, TurnService } from './turn/turn.service.js';
export { type StopReason, TurnStoppedError } from './turn/turn-stopped.error.js';
export { type TurnStream } from './turn/turn-stream.js';
export {
  type CancelMode,
  isTerminal,
  type Turn,
  type TurnCommand,
  type TurnErrorRecord,
  type TurnInput,
  type TurnReply,
  type TurnRequest,
  type TurnStatus,
  type WhenBusy,
} from './turn/turn.js';

// Orchestrators
export { defineOrchestrator } from './orchestrator/define-orchestrator.js';
export {
  Evaluate,
  getOrchestratorToken,
  InjectOrchestrator,
  Intent,
  Orchestrator,
  type OrchestratorRef,
  Route,
  Summarize,
} from './orchestrator/orchestrator.decorators.js';
export {
  OrchestratorDriftError,
  OrchestratorResultError,
  StateSchemaError,
  UnknownIntentError,
} from './orchestrator/orchestrator.errors.js';
export { type HistoryEntry, type UndoResult } from './orchestrator/time-travel.js';
export { NothingToUndoError, SessionNotEmptyError } from './orchestrator/time-travel.errors.js';
export { ForkOptions, HistoryQuery, UndoOptions } from './orchestrator/time-travel.inputs.js';
export {
  type ConversationCommandArgs,
  type OrchestratorExecuteOptions,
  OrchestratorHandle,
  type OrchestratorSubmitOptions,
} from './orchestrator/orchestrator-handle.js';
export {
  type OrchestratorTool,
  type OrchestratorToolCall,
  type OrchestratorToolInput,
  type OrchestratorToolOptions,
  type OrchestratorToolResult,
} from './orchestrator/orchestrator-tool.js';
export { type ToolInputSchema } from './orchestrator/tool-input-schema.js';
export {
  type OrchestratorEvent,
  OrchestratorEvents,
  type OrchestratorEventType,
  type OrchestratorListeners,
} from './orchestrator/orchestrator-events.js';
export { type MemorableTurn, MemoryPort, type MemoryQuery, type MemoryScope } from './orchestrator/memory-port.js';
export { type StateMigration } from './orchestrator/state-migrations.js';
export { type StandardSchema, type StateSchema } from './orchestrator/state-schema.js';
export {
  type CompactionReport,
  type DecisionReport,
  type DecisionSource,
  type EndedBy,
  type IntentReport,
  type IterationReport,
  type TurnReport,
  type UsageReport,
} from './orchestrator/turn-report.js';
export {
  type EvaluateFunction,
  type Evaluation,
  type ExplainedChoice,
  type IntentChoice,
  type IntentFunction,
  type IntentReply,
  type IntentResult,
  IntentRouter,
  type OrchestratorConfig,
  type OrchestratorDefinition,
  type OrchestratorOptions,
  type RouteDecision,
  type RouteFunction,
} from './orchestrator/orchestrator.js';
export {
  type StepInfo,
  type TurnContext,
  TurnContextFactory,
  type TurnFlowState,
  type TurnModules,
  type TurnTask,
  type TurnTaskState,
  type TurnTools,
  type TurnToolState,
  type TurnUsage,
  type WaitForOptions,
} from './orchestrator/turn-context.js';
export { END, outcome, type OutcomeOptions, reply, TurnOutcome } from './orchestrator/turn-outcome.js';

// Steps and tools
export {
  createOrchestrationService,
  createOrchestrationStateManager,
  createStepSequencer,
  OrchestrationStateManagerOptions,
  type StandaloneOrchestrationStateManager,
} from './create-orchestration.js';
export { type AgentRef } from './orchestration/agent-ref.js';
export { type AIOrchestrationState } from './orchestration/ai-orchestration-state.js';
export { defineStepPlan, type StepPlanConfig } from './orchestration/define-step-plan.js';
export { type OrchestrationEffect } from './orchestration/orchestration-entry.js';
export {
  type OrchestrationEvent,
  OrchestrationEvents,
  type OrchestrationEventType,
} from './orchestration/orchestration-events.js';
export * from './orchestration/orchestration-config.js';
export * from './orchestration/orchestration.errors.js';
export { OrchestrationUpdates, ToolUsageOptions, ToolUseOptions } from './orchestration/orchestration.inputs.js';
export { OrchestrationService } from './orchestration/orchestration.service.js';
export { type OrchestrationProgress, type ToolOutcome, type ToolUse } from './orchestration/orchestration-state.js';
export { OrchestrationStateManager } from './orchestration/orchestration-state-manager.service.js';
export { type StepPlan } from './orchestration/step-plan.js';
export {
  StepPredicate,
  type StepPredicateContext,
  type StepPredicateHandler,
} from './orchestration/step-predicates.js';
export { type SequencedStep, StepSequencer } from './orchestration/step-sequencer.service.js';
export { type StorageProvider } from './orchestration/storage-provider.js';
export { type TokenUsage, type TokenUsageInput } from './orchestration/token-usage.js';
export {
  defineSessionManager,
  getSessionManagerToken,
  InjectSessionManager,
  type SessionManagerDefinition,
} from './state/session-manager-feature.js';
export { type ManagedSession, SessionManager, type SessionManagerOptions } from './state/session-manager.js';
export { StateConflictError, StateResetError } from './state/state.errors.js';

// State of sessions, and its control plane
export {
  type BuiltInState,
  type ExportedState,
  SessionStateService,
  type StateRedactor,
} from './state/session-state.service.js';
export {
  SessionStateModule,
  type StateClearing,
  type StateCompaction,
  type StateCompactionOptions,
  type StateDataPage,
  type StateDescription,
  type StateModule,
  type StateModuleName,
} from './state/state-module.js';
export { ConversationState } from './state/conversation-state.js';
export { type ToolEntry, ToolState } from './state/tool-state.js';
export { type Task, type TaskHistoryEntry, type TaskState } from './state/task.js';
export { TaskConflictError, TaskNotFoundError, TaskTransitionError } from './state/task.errors.js';
export { TaskStates } from './state/task-states.js';
export { type FlowCheckpoint, FlowState } from './state/flow-state.js';
export { type StatePage } from './state/state-data.js';
export {
  FlowSaveOptions,
  FlowVersionQuery,
  MessageQuery,
  MessageWindow,
  NewTask,
  StatePageQuery,
  TaskQuery,
  TaskTransitionOptions,
  ToolEntryOptions,
  ToolQuery,
  ToolSetOptions,
} from './state/state.inputs.js';
export { StateOptions } from './state/state.settings.js';
export * from './state/state-report.js';
export {
  COMPACTION_STRATEGIES,
  type CompactionStrategy,
  CompactStateRequest,
  DescribeStateRequest,
  ResetStateRequest,
  StateRequest,
} from './state/state-request.js';
export { StateModuleDisabledError } from './state/state.errors.js';

// Checkpoints and the conversation
export {
  CheckpointConflictError,
  CheckpointNotFoundError,
  CheckpointPrunedError,
} from './checkpoint/checkpoint.errors.js';
export { type CheckpointPage, CheckpointStore, type KeepCheckpoints } from './checkpoint/checkpoint.store.js';
export { type Checkpoint, type NewCheckpoint, type StateSnapshot } from './checkpoint/checkpoint.js';
export { type ConversationLog, type MessageRange, type NewMessage } from './conversation/conversation.store.js';
export {
  type Message,
  type MessageDraft,
  type MessagePart,
  type MessageRole,
  type MessageSpan,
  type ToolCall,
} from './conversation/message.js';
export { type ConversationView, type WindowFunction, type WindowShape } from './conversation/window.js';
export { type HistoryWindow, type HistoryWindowOption } from './conversation/history-window.js';
export {
  type Compaction,
  type CompactionInfo,
  type CompactionOptions,
  type CompactionPolicy,
  type Summarizer,
  type Summary,
} from './conversation/compaction-policy.js';
export { type CompactionEvent } from './conversation/compaction-events.js';
export {
  CompactionBusyError,
  CompactionFailedError,
  CompactionNotConfiguredError,
  type CompactionPhase,
} from './conversation/compaction.errors.js';
export { type CompactionResult } from './conversation/compaction-run.js';
export { type TokenCounter } from './conversation/token-counter.js';

// Guards, decorators and errors of every transport
export { SessionIdMissingError, UnauthenticatedError } from './transport/transport.errors.js';
export { type IdSource } from './transport/id-source.js';
export { type Principal, type PrincipalResolver, signedInUser } from './transport/principal.js';
export {
  AllowAnonymousSession,
  CurrentSession,
  SessionId,
  UseSession,
  type UseSessionOptions,
} from './transport/session.decorators.js';
export { SessionGuard } from './transport/session.guard.js';
export { CurrentTurn, type CurrentTurnOptions } from './transport/current-turn.decorator.js';
export { type AgentOfState, OrchestrationState } from './transport/orchestration-state.decorator.js';
export { type RequiredTool, RequireTool } from './transport/tool.decorators.js';
export { ToolGuard } from './transport/tool.guard.js';
export { ToolUseInterceptor } from './transport/tool-use.interceptor.js';
export { type SessionsErrorBody } from './transport/sessions-error-body.js';
export { SessionsExceptionFilter } from './transport/sessions-exception.filter.js';

// HTTP
export { UnsupportedMediaTypeError } from './http/http.errors.js';
export { SessionsControllersOptions } from './http/controllers/controllers.options.js';
export { SessionsControllerOptions } from './http/sessions/sessions-controller.options.js';
export { type SessionView } from './http/sessions/session-view.js';
export { TurnsControllerOptions } from './http/turns/turns-controller.options.js';
export { type TurnView } from './http/turns/turn-view.js';
export { STATE_CAPABILITIES, type StateCapability } from './http/state/state-access.js';
export { StateControllerOptions } from './http/state/state-controller.options.js';
export { type StateErrorBody } from './http/state/state-error-body.js';
export { type StateEvent, StateEvents } from './http/state/state-events.js';
export * from './http/state/state-http.errors.js';

// Stores: the memory one, and the ports that every store implements
export {
  type MemoryAdapterOptions,
  InMemorySessionStoreAdapter,
  memoryAdapter,
} from './store/memory/memory-adapter.js';
export { type SessionsAdapter } from './sessions.adapter.js';
export * as sessionLifecycle from './session/session.lifecycle.js';
export { workerOf } from './turn/lane.js';
export { interruptedMessages } from './turn/user-message.js';
export { writtenNamespaces } from './turn/written-namespaces.js';
export { CONVERSATION_NAMESPACE } from './conversation/conversation-head.js';
export {
  type AtomicSessionStoreAdapter,
  type CreatedSession,
  type SessionStoreAdapter,
} from './session/session.store.js';
export * from './turn/turn.store.js';
export { type TurnEventBatch, type TurnEventLog } from './turn/turn-event-log.js';
export { type StepKey, type StoredStep, type WaitResult } from './turn/turn-step.js';
export { type TurnQueue } from './turn/turn-queue.js';
export * from './state/state.store.js';
export { type Lease, type LeaseStore } from './maintenance/lease.store.js';

// Everywhere
export { type IdGenerator } from './common/ids.js';
export { type JsonObject, type JsonPrimitive, type JsonValue } from './common/json.js';
export {
  InvalidInputError,
  SessionsConfigurationError,
  SessionsError,
  StateSerializationError,
  StoreUnavailableError,
  TooLargeError,
} from './common/sessions.error.js';
