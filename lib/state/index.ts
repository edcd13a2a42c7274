export { ConversationState } from './conversation-state.js';
export { type FlowCheckpoint, FlowState } from './flow-state.js';
export {
  defineSessionManager,
  getSessionManagerToken,
  InjectSessionManager,
  type SessionManagerDefinition,
} from './session-manager-feature.js';
export { type ManagedSession, SessionManager, type SessionManagerOptions } from './session-manager.js';
export {
  type BuiltInState,
  type ExportedState,
  SessionStateService,
  type StateRedactor,
} from './session-state.service.js';
export { type StatePage } from './state-data.js';
export {
  SessionStateModule,
  type StateClearing,
  type StateCompaction,
  type StateCompactionOptions,
  type StateDataPage,
  type StateDescription,
  type StateHook,
  type StateHookCall,
  type StateModule,
  type StateModuleName,
} from './state-module.js';
export * from './state-report.js';
export { COMPACTION_STRATEGIES, type CompactionStrategy } from '../conversation/compaction-request.js';
export { CompactStateRequest, DescribeStateRequest, ResetStateRequest, StateRequest } from './state-request.js';
export {
  ConversationNotResetError,
  StateConflictError,
  StateModuleDisabledError,
  StateModuleTimeoutError,
} from './state.errors.js';
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
  ToolPatchOptions,
  ToolQuery,
  ToolSetOptions,
} from './state.inputs.js';
export { StateOptions } from './state.options.js';
export { TaskStates } from './task-states.js';
export { TaskConflictError, TaskNotFoundError, TaskTransitionError } from './task.errors.js';
export { type Task, type TaskHistoryEntry, type TaskState } from './task.js';
export { type ToolEntry, ToolState } from './tool-state.js';
