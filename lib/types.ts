/**
 * Types of parameters and results, for code that names them: a variable, a parameter or a field. The functions and
 * classes of `nestjs-agent-sessions` accept and return them, so most applications never import this entry. It has no
 * code at run time. Its sections are those of the root.
 *
 * @packageDocumentation
 * @module nestjs-agent-sessions/types
 */

// The module
export type { LoggingOptions } from './module/logging.options.js';
export type { FeatureRef } from './module/sessions.feature.js';

// Sessions
export type { SurfaceLimitPolicy } from './ledger/session.js';
export type { ErasedRecords } from './records/session-records.service.js';
export type { SessionEventOf, SessionEventType } from './session/session-events.js';
export type { SessionStoreSettings } from './session/session-store.service.js';
export type { MetadataOptions, RevokeOptions, SweepLimit } from './session/session.inputs.js';

// Turns
export type { LaneHead, LanePage } from './ledger/lane.js';
export type { TurnRequest, TurnWaitingFor } from './ledger/turn.js';
export type { SpentTokens } from './ledger/turn-usage.js';
export type { DrainOptions, LaneListQuery, LaneScope } from './turn/lane.inputs.js';
export type { LaneCounts } from './turn/lane.service.js';
export type { RecoveryCounts } from './turn/turn-recovery.js';
export type { TurnEnd, TurnWaiting } from './turn/turn-result.js';
export type { CancelOptions } from './turn/turn.inputs.js';
export type { StopReason } from './turn/turn-stopped.error.js';
export type { TurnInputLike, TurnListQuery, WaitOptions } from './turn/turn.inputs.js';
export type { CommandOptions } from './turn/turn.service.js';

// Orchestrators
export type { StepOptions, ToolCallOptions } from './orchestrator/call-options.js';
export type { IntentDecorator } from './orchestrator/intent-decorator.js';
export type { OrchestratorDecorator } from './orchestrator/orchestrator-decorator.js';
export type { MemoryScope } from './orchestrator/memory-port.js';
export type { OrchestratorEventType, OrchestratorListeners } from './orchestrator/orchestrator-events.js';
export type {
  ConversationCommandArgs,
  OrchestratorExecuteOptions,
  OrchestratorSubmitOptions,
} from './orchestrator/orchestrator-handle.js';
export type {
  OrchestratorToolCall,
  OrchestratorToolCaller,
  OrchestratorToolResult,
} from './orchestrator/orchestrator-tool.js';
export type {
  EvaluateFunction,
  ExplainedChoice,
  IntentChoice,
  IntentFunction,
  OrchestratorOptions,
  RouteFunction,
} from './orchestrator/orchestrator.js';
export type { RouteDecorator } from './orchestrator/route-decorator.js';
export type { StandardSchema } from './orchestrator/state-schema.js';
export type { ForkOptions, HistoryQuery, UndoOptions } from './orchestrator/time-travel.inputs.js';
export type { OrchestratorToolInput, ToolInputSchema } from './orchestrator/tool-input-schema.js';
export type {
  TurnFlowState,
  TurnModules,
  TurnTask,
  TurnTaskState,
  TurnToolState,
  TurnUsage,
  WaitForOptions,
} from './orchestrator/turn-context.js';
export type { OutcomeOptions } from './orchestrator/turn-outcome.js';
export type {
  CompactionReport,
  DecisionReport,
  DecisionSource,
  EndedBy,
  IntentReport,
  IterationReport,
  UsageReport,
} from './orchestrator/turn-report.js';

// Steps and tools
export type {
  CleanupOptions,
  OrchestrationStateManagerOptions,
  StandaloneOrchestrationStateManager,
} from './module/create-orchestration.js';
export type { AdmittedTool } from './orchestration/tool-admissions.js';
export type { AgentRef } from './orchestration/agent-ref.js';
export type { OnViolation } from './orchestration/orchestration-config.js';
export type { OrchestrationEffect } from './orchestration/orchestration-entry.js';
export type { OrchestrationEventType } from './orchestration/orchestration-events.js';
export type { OrchestrationProgress, SequenceMove, ToolOutcome } from './orchestration/orchestration-state.js';
export type {
  OrchestrationUpdates,
  ToolAdmissionOptions,
  ToolUsageOptions,
  ToolUseOptions,
} from './orchestration/orchestration.inputs.js';
export type { SequencedStep } from './orchestration/step-sequencer.service.js';

// State of sessions
export type { SessionManagerOptions } from './state/session-manager.js';
export type { BuiltInState, ExportedState } from './state/session-state.service.js';
export type {
  StateCompactionOptions,
  StateDataPage,
  StateHook,
  StateModuleName,
} from './state/state-module.js';
export type {
  FlowSaveOptions,
  FlowVersionQuery,
  MessageQuery,
  MessageWindow,
  NewTask,
  StatePageQuery,
  TaskQuery,
  TaskTransitionOptions,
  ToolEntryOptions,
  ToolPatchOptions,
  ToolQuery,
  ToolSetOptions,
} from './state/state.inputs.js';
export type { TaskState } from './state/task.js';

// The conversation
export type { Compaction } from './conversation/compaction-policy.js';
export type { CompactionPhase } from './conversation/compaction.errors.js';
export type { HistoryWindow, HistoryWindowOption } from './conversation/history-window.js';
export type { ConversationView, WindowShape } from './conversation/window.js';
export type { MessageSpan } from './ledger/message.js';

// Guards and decorators
export type { CurrentTurnOptions } from './transport/current-turn.decorator.js';
export type { IdSource } from './transport/id-source.js';
export type { AgentOfState } from './transport/current-orchestration-state.decorator.js';
export type { UseSessionOptions } from './transport/session.decorators.js';
export type { RequiredTool } from './transport/tool.decorators.js';
export type { IdPlace, SourceKind } from './transport/transport.js';

// Stores and queues
export type { MemoryAdapterOptions } from './store/memory/memory-adapter.js';

// Everywhere
export type { IdGenerator } from './common/ids.js';
export type { JsonPrimitive } from './common/json.js';
