/**
 * Helpers for tests of applications and stores.
 * @module nestjs-agent-sessions/testing
 */

export { type ScriptedModelAnswer, type ScriptedToolCall } from '../chat/scripted-answer.js';
export {
  type AnsweredCall,
  type ModelAnswer,
  type ModelCall,
  type ModelScript,
  type ScriptedModel,
  scriptedModel,
} from '../chat/scripted-model.js';
export { type RequestedCall } from './chat/chat-client.js';
export { type ChatTransportTarget } from './chat/chat-transport-target.js';
export { describeChatTransport } from './chat/describe-chat-transport.js';
export { describeSessionsAdapter } from './conformance/describe-sessions-adapter.js';
export { type ConformanceTarget } from './conformance/target.js';
export { Conversation, type SayOptions } from './conversation.js';
export { type ScriptedAnswer, type ScriptedOrchestrator, scriptedOrchestrator } from './scripted-orchestrator.js';
export { type ConversationOptions } from './open-conversation.js';
export { SessionsTestingModule } from './sessions-testing-module.js';
export { TestClock } from './test-clock.js';
export { TurnNeedsTimeError } from './testing.errors.js';
export { type SessionsTestingOptions } from './testing-options.js';
