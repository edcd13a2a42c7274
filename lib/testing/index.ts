/**
 * Helpers for tests of applications and stores. `SessionsTestingModule` starts a Nest application on a memory store
 * with a clock that the test moves, and a `Conversation` sends messages to it. `scriptedModel` and
 * `scriptedOrchestrator` replace models and orchestrators. `describeSessionsAdapter` and `describeChatTransport` are
 * suites for your own store or chat transport.
 *
 * @packageDocumentation
 * @module nestjs-agent-sessions/testing
 */

// Applications
export { SessionsTestingModule } from './sessions-testing-module.js';
export { type SessionsTestingOptions } from './testing-options.js';
export { Conversation, type SayOptions } from './conversation.js';
export { type ConversationOptions } from './open-conversation.js';
export { TestClock } from './test-clock.js';
export { TurnNeedsTimeError } from './testing.errors.js';

// Scripted orchestrators and models
export { type ScriptedAnswer, type ScriptedOrchestrator, scriptedOrchestrator } from './scripted-orchestrator.js';
export { type ScriptedModelAnswer, type ScriptedToolCall } from '../chat/scripted-answer.js';
export {
  type AnsweredCall,
  type ModelAnswer,
  type ModelCall,
  type ModelScript,
  type ScriptedModel,
  scriptedModel,
} from '../chat/scripted-model.js';

// Suites for stores and chat transports
export { describeSessionsAdapter } from './conformance/describe-sessions-adapter.js';
export { type ConformanceTarget } from './conformance/target.js';
export { describeChatTransport } from './chat/describe-chat-transport.js';
export { type ChatTransportTarget } from './chat/chat-transport-target.js';
export { type RequestedCall } from './chat/chat-client.js';
