/**
 * Tests of applications and of stores.
 * @module nestjs-agent-sessions/testing
 */

export { describeSessionsAdapter } from './conformance/describe-sessions-adapter.js';
export { type ConformanceTarget } from './conformance/target.js';
export { Conversation, type SayOptions } from './conversation.js';
export { type ScriptedAnswer, type ScriptedOrchestrator, scriptedOrchestrator } from './scripted-orchestrator.js';
export { type ConversationOptions } from './open-conversation.js';
export { SessionsTestingModule } from './sessions-testing-module.js';
export { TestClock } from './test-clock.js';
export { ScriptOverError, TurnNeedsTimeError } from './testing.errors.js';
export { type SessionsTestingOptions } from './testing-options.js';
