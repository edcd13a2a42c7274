/**
 * The types of the controllers and the control plane: options, views, requests, reports and errors.
 * @module nestjs-agent-sessions/http
 */

export {
  type StateData,
  type StateOperation,
  type StateOperationResult,
  type StateStoreError,
  type StateStoreReport,
} from '../state/state-report.js';
export { CompactStateRequest, DescribeStateRequest, ResetStateRequest, StateRequest } from '../state/state-request.js';
export { COMPACTION_STRATEGIES, type CompactionStrategy } from '../conversation/compaction-request.js';
export { ChatControllerOptions } from './controllers/controllers.options.js';
export { type ChatList, type ChatMessages, type ChatView, type StoppedChat } from './chat/client-chats.js';
export { SessionsControllersOptions } from './controllers/controllers.options.js';
export { type SessionView } from './sessions/session-view.js';
export { SessionsControllerOptions } from './controllers/controllers.options.js';
export { STATE_CAPABILITIES, type StateCapability } from './state/state-access.js';
export { StateControllerOptions } from './controllers/controllers.options.js';
export { type StateErrorBody } from './state/state-http.errors.js';
export { type StateEvent, StateEvents } from './state/state-events.js';
export { StateRequestError, StateStoresFailedError } from './state/state-http.errors.js';
export { type ConversationPage, type ConversationTurn, type MessageView } from './turns/conversation-view.js';
export { type TurnView } from './turns/turn-view.js';
export { TurnsControllerOptions } from './controllers/controllers.options.js';
