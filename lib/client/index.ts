/**
 * Reads turns and calls the control plane over HTTP, in a browser or on a server. It needs `fetch`, but neither Nest
 * nor Node. `readAnswer` yields the text of an answer while it is written, and `readTurnEvents` the events of a turn.
 * Both reconnect and resume. `stateClient` describes, resets and compacts the state of sessions.
 *
 * @packageDocumentation
 * @module nestjs-agent-sessions/client
 */

// Answers and events of turns
export { type AnswerOptions, readAnswer, type TurnAnswer } from './turn-answer.js';
export { readTurnEvents, type TurnConnectionState, type TurnEventsOptions } from './turn-events.js';
export { type TurnStreamEvent } from '../turn/turn-stream-event.js';
export { type TurnEventsSource } from './turn-connection.js';
export {
  type EventStreamAnswer,
  type EventStreamBody,
  type EventStreamFetch,
  type EventStreamRequest,
} from './event-stream.js';
export { type EmittedEvent, type NewTurnEvent } from '../ledger/turn-event.js';
export { type TurnEnd, type TurnWaiting } from '../turn/turn-result.js';
export { type TerminalTurnStatus } from '../ledger/turn.js';

// Views of sessions and turns
export { type SessionView } from '../http/sessions/session-view.js';
export { type ConversationPage, type ConversationTurn, type MessageView } from '../http/turns/conversation-view.js';
export { type TurnView } from '../http/turns/turn-view.js';

// The control plane
export {
  type Fetch,
  type FetchAnswer,
  type FetchRequest,
  type StateCallOptions,
  type StateClient,
  stateClient,
  type StateClientOptions,
} from './state-client.js';
export {
  type CompactStateRequest,
  type DescribeStateRequest,
  type ResetStateRequest,
  type StateRequest,
} from '../state/state-request.js';
export {
  type StateData,
  type StateOperation,
  type StateOperationResult,
  type StateStoreError,
  type StateStoreReport,
} from '../state/state-report.js';
export { type CompactionStrategy } from '../conversation/compaction-request.js';

// Everywhere
export { ResponseError } from './response.error.js';
export { type JsonObject, type JsonPrimitive, type JsonValue } from '../common/json.js';
export { type TokenCounts } from '../common/token-counts.js';
