export { CheckpointConflictError, CheckpointNotFoundError, CheckpointPrunedError } from './checkpoint.errors.js';
export { type Checkpoint, type NewCheckpoint, type StateSnapshot } from './checkpoint.js';
export { type CheckpointPage, CheckpointStore, type KeepCheckpoints } from './checkpoint.store.js';
export { type ConversationLog, type MessageRange, type NewMessage } from './conversation.store.js';
export { type Lane, type LaneHead, type LaneMode, type LanePage, type LaneQuery, workerOf } from './lane.js';
export { type Lease, type LeaseStore } from './lease.store.js';
export {
  type Message,
  type MessageDraft,
  type MessagePart,
  type MessageRole,
  type MessageSpan,
  type ToolCall,
} from './message.js';
export { CONVERSATION_NAMESPACE } from './module-namespace.js';
export { SessionQuery } from './session-query.js';
export { compareSessions, decodeCursor, encodeCursor, type SessionCursor } from './session.cursor.js';
export {
  SessionConflictError,
  SessionNotFoundError,
  SessionStateError,
  SurfaceConflictError,
  SurfaceLimitError,
} from './session.errors.js';
export {
  type NewSession,
  type Session,
  type SessionChange,
  type SessionLifetime,
  type SessionState,
  type SurfaceChange,
  type SurfaceLimitPolicy,
  type SurfacePolicy,
  type SurfaceRules,
} from './session.js';
export * as sessionLifecycle from './session.lifecycle.js';
export { type AtomicSessionStoreAdapter, type CreatedSession, type SessionStoreAdapter } from './session.store.js';
export { StateResetError } from './state-reset.error.js';
export { type SessionsAdapter } from './sessions.adapter.js';
export * from './state.store.js';
export { type TurnEventBatch, type TurnEventLog } from './turn-event-log.js';
export { type EmittedEvent, type NewTurnEvent, type TurnEvent, type TurnEventMessage } from './turn-event.js';
export { type TurnQueue, type LaneVisit, type VisitPlace, type VisitSlot } from './turn-queue.js';
export {
  stepId,
  type StepKey,
  stepKeyOf,
  type StepKind,
  stepText,
  type StoredStep,
  type WaitResult,
} from './turn-step.js';
export { type SpentTokens, type TurnSpending } from './turn-usage.js';
export * from './turn.errors.js';
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
} from './turn.js';
export * from './turn.store.js';
export { interruptedMessages } from './user-message.js';
export { writtenNamespaces } from './written-namespaces.js';
