/**
 * The types of the controllers and of the control plane. The `controllers` option of `SessionsModule.forRoot` enables
 * the controllers: sessions, turns, chats of the AI SDK, and the control plane, which describes, resets and compacts
 * the state of sessions. Import this entry for code that names their options, views, requests, reports and errors.
 *
 * @packageDocumentation
 * @module nestjs-agent-sessions/http
 */

// Options of the controllers
export {
  ChatControllerOptions,
  SessionsControllerOptions,
  SessionsControllersOptions,
  StateControllerOptions,
  TurnsControllerOptions,
} from './controllers/controllers.options.js';

// Views of sessions, turns and chats
export { type SessionView } from './sessions/session-view.js';
export { type ConversationPage, type ConversationTurn, type MessageView } from './turns/conversation-view.js';
export { type TurnView } from './turns/turn-view.js';
export { type ChatList, type ChatMessages, type ChatView, type StoppedChat } from './chat/client-chats.js';

// The control plane
export { CompactStateRequest, DescribeStateRequest, ResetStateRequest, StateRequest } from '../state/state-request.js';
export { COMPACTION_STRATEGIES, type CompactionStrategy } from '../conversation/compaction-request.js';
export {
  type StateData,
  type StateOperation,
  type StateOperationResult,
  type StateStoreError,
  type StateStoreReport,
} from '../state/state-report.js';
export { STATE_CAPABILITIES, type StateCapability } from './state/state-access.js';
export { type StateEvent, StateEvents } from './state/state-events.js';
export { type StateErrorBody, StateRequestError, StateStoresFailedError } from './state/state-http.errors.js';
