/**
 * The API for authors of stores and queues. An adapter implements the ports of `SessionsAdapter` over one backend, or
 * passes a few operations on rows to `adapterOverTables`, which implements all ports. A queue implements `TurnQueue`,
 * which notifies workers of lanes with work. This entry also has the stored types, errors and rules of all stores. To
 * verify an adapter, run `describeSessionsAdapter` of `nestjs-agent-sessions/testing`.
 *
 * @packageDocumentation
 * @module nestjs-agent-sessions/adapter
 */

// The adapter
export { type SessionsAdapter } from './ledger/sessions.adapter.js';

// An adapter over tables
export { adapterOverTables, type TableAdapterOptions } from './store/core/adapter-over-tables.js';
export {
  compareKeys,
  indexKeys,
  type KeyRange,
  primaryKey,
  type RowKey,
  STORE_TABLES,
  type TableDatabase,
  type TableKeys,
  type TableName,
  type TableRow,
  type TableTransaction,
} from './store/core/table-database.js';

// Sessions
export { SessionQuery } from './ledger/session-query.js';
export { compareSessions, decodeCursor, encodeCursor, type SessionCursor } from './ledger/session.cursor.js';
export {
  SessionConflictError,
  SessionNotFoundError,
  SessionStateError,
  SurfaceConflictError,
  SurfaceLimitError,
} from './ledger/session.errors.js';
export {
  type NewSession,
  type Session,
  type SessionChange,
  type SessionIdentity,
  type SessionLifetime,
  type SessionState,
  type SurfaceChange,
  type SurfaceLimitPolicy,
  type SurfacePolicy,
  type SurfaceRules,
} from './ledger/session.js';
export * as sessionLifecycle from './ledger/session.lifecycle.js';
export {
  type AtomicSessionStoreAdapter,
  type CreatedSession,
  type SessionStoreAdapter,
} from './ledger/session.store.js';

// Turns
export { type Lane, type LaneHead, type LaneMode, type LanePage, type LaneQuery, workerOf } from './ledger/lane.js';
export {
  stepId,
  type StepKey,
  stepKeyOf,
  type StepKind,
  stepText,
  type StoredStep,
  type WaitResult,
} from './ledger/turn-step.js';
export { type SpentTokens, type TurnSpending } from './ledger/turn-usage.js';
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
  TurnFencedError,
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
  type Turn,
  type TurnCommand,
  type TurnErrorRecord,
  type TurnInput,
  type TurnReply,
  type TurnRequest,
  type TurnStatus,
  type WhenBusy,
} from './ledger/turn.js';
export {
  type AcceptedTurn,
  type AcceptTurn,
  type AwaitedTurn,
  type ChangedLane,
  type ClaimedTurn,
  type ClaimNotice,
  type ClaimRequest,
  type LaneControl,
  type RenewedLease,
  type SettledTurn,
  type SignalledTurn,
  type StoredSignal,
  type TurnChanges,
  type TurnFailure,
  type TurnHold,
  type TurnLedger,
  type TurnQuery,
  type TurnSettlement,
  type TurnWait,
} from './ledger/turn.store.js';

// Events of turns
export { type TurnEventBatch, type TurnEventLog } from './ledger/turn-event-log.js';
export { type EmittedEvent, type NewTurnEvent, type TurnEvent, type TurnEventMessage } from './ledger/turn-event.js';

// State documents
export { writtenNamespaces } from './ledger/namespaces.js';
export { StateResetError } from './ledger/state-reset.error.js';
export {
  type DocumentStore,
  type StateAccess,
  type StateAddress,
  type StateAppend,
  type StateBatch,
  type StateChange,
  type StateCleared,
  type StateDocument,
  type StateEntry,
  type StateFold,
  type StateName,
  type StateOwnership,
  type StateQuery,
  type StateReset,
  type StateSelection,
  type StateStore,
  type StateWriteOptions,
} from './ledger/state.store.js';

// The conversation
export { type ConversationLog, type MessageRange, type NewMessage } from './ledger/conversation.store.js';
export {
  type ConversationMessage,
  type MessageDraft,
  type MessagePart,
  type MessageRole,
  type MessageSpan,
  type MessageToolCall,
} from './ledger/message.js';
export { CONVERSATION_NAMESPACE } from './ledger/namespaces.js';
export { interruptedMessages } from './ledger/user-message.js';

// Checkpoints and leases
export { CheckpointConflictError, CheckpointNotFoundError } from './ledger/checkpoint.errors.js';
export { type Checkpoint, type NewCheckpoint, type StateSnapshot } from './ledger/checkpoint.js';
export { type CheckpointPage, CheckpointStore, type KeepCheckpoints } from './ledger/checkpoint.store.js';
export { type Lease, type LeaseStore } from './ledger/lease.store.js';

// Queues
export { type LaneVisit, type ReservedSlot, type TurnQueue, type VisitSlot } from './ledger/turn-queue.js';

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
