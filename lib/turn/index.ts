export { DrainOptions, LaneListQuery, type LaneScope } from './lane.inputs.js';
export { type Lane, type LaneHead, type LaneMode, type LanePage, type LaneQuery, workerOf } from '../ledger/lane.js';
export { type LaneCounts, LaneService } from './lane.service.js';
export { type TurnEventBatch, type TurnEventLog } from '../ledger/turn-event-log.js';
export { type EventResponse } from './turn-event-pace.js';
export { type EmittedEvent, type NewTurnEvent, type TurnEvent, type TurnEventMessage } from '../ledger/turn-event.js';
export { type TurnQueue, type LaneVisit, type VisitPlace, type VisitSlot } from '../ledger/turn-queue.js';
export { type RecoveryCounts } from './turn-recovery.js';
export { type TurnEnd, type TurnResult } from './turn-result.js';
export {
  stepId,
  type StepKey,
  stepKeyOf,
  type StepKind,
  stepText,
  type StoredStep,
  type WaitResult,
} from '../ledger/turn-step.js';
export { type StopReason, TurnStoppedError } from './turn-stopped.error.js';
export { type TurnStream } from './turn-stream.js';
export * from '../ledger/turn.errors.js';
export { ExecuteOptions, SubmitOptions, type TurnInputLike, TurnListQuery, WaitOptions } from './turn.inputs.js';
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
} from '../ledger/turn.js';
export { BackoffOptions, RetryOptions, TurnEventsOptions, TurnsOptions } from './turn.options.js';
export { type CommandOptions, TurnService } from './turn.service.js';
export * from '../ledger/turn.store.js';
export { type SpentTokens, type TurnSpending } from '../ledger/turn-usage.js';
export { interruptedMessages } from '../ledger/user-message.js';
export { writtenNamespaces } from '../ledger/written-namespaces.js';
