export { type StepOptions, type ToolCallOptions } from './call-options.js';
export { defineOrchestrator } from './define-orchestrator.js';
export { type Evaluation, type IntentReply } from './evaluation.js';
export { type MemorableTurn, MemoryPort, type MemoryQuery, type MemoryScope } from './memory-port.js';
export {
  type OrchestratorEvent,
  OrchestratorEvents,
  type OrchestratorEventType,
  type OrchestratorListeners,
} from './orchestrator-events.js';
export {
  type ConversationCommandArgs,
  type OrchestratorExecuteOptions,
  OrchestratorHandle,
  type OrchestratorSubmitOptions,
} from './orchestrator-handle.js';
export {
  type OrchestratorTool,
  type OrchestratorToolCall,
  type OrchestratorToolCaller,
  type OrchestratorToolInput,
  type OrchestratorToolOptions,
  type OrchestratorToolResult,
} from './orchestrator-tool.js';
export { type OrchestratorRef } from '../orchestration/orchestrator-ref.js';
export {
  Evaluate,
  getOrchestratorToken,
  InjectOrchestrator,
  Intent,
  Orchestrator,
  Route,
  Summarize,
} from './orchestrator.decorators.js';
export {
  NoIntentError,
  OrchestratorDriftError,
  OrchestratorResultError,
  StateSchemaError,
  StepKeyRequiredError,
  UnknownIntentError,
} from './orchestrator.errors.js';
export {
  type EvaluateFunction,
  type ExplainedChoice,
  type IntentChoice,
  type IntentFunction,
  type IntentResult,
  IntentRouter,
  type OrchestratorConfig,
  type OrchestratorDefinition,
  type OrchestratorOptions,
  type RouteDecision,
  type RouteFunction,
} from './orchestrator.js';
export { type StateMigration } from './state-migrations.js';
export { type StandardSchema, type StateSchema } from './state-schema.js';
export { NothingToUndoError, SessionNotEmptyError } from './time-travel.errors.js';
export { ForkOptions, HistoryQuery, UndoOptions } from './time-travel.inputs.js';
export { type HistoryEntry, type UndoResult } from './time-travel.js';
export { type ToolInputSchema } from './tool-input-schema.js';
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
} from './turn-context.js';
export { END, outcome, type OutcomeOptions, reply, TurnOutcome } from './turn-outcome.js';
export {
  type CompactionReport,
  type DecisionReport,
  type DecisionSource,
  type EndedBy,
  type IntentReport,
  type IterationReport,
  type TurnReport,
  type UsageReport,
} from './turn-report.js';
