/**
 * Durable models, tools and chat answers with the AI SDK, version 6 or 7.
 * @module nestjs-agent-sessions/ai-sdk
 */

export { type AnyLanguageModel } from './language-model.js';
export { ApprovalAnswer, ToolOutput } from './user-answers.js';
export { approvalSignal, type RepeatedCall, toolOutputSignal } from '../chat/user-signals.js';
export { durableCalls } from './durable-calls.js';
export { type DurableModel, durableModel, DurableModelOptions } from './durable-model.js';
export { durableTools, DurableToolsOptions, type ToolTurn } from './durable-tools.js';
export { AnswerError } from '../chat/chat.errors.js';
export { fromModelMessages, toModelMessages, type ModelMessagesOptions } from './model-messages.js';
export { fromUIMessage, toUIMessages } from './ui-messages.js';
export { idempotencyKeyOf } from './tool-call.js';
export { type ModelTurn } from './model-calls.js';
export { type ScriptedModelAnswer, type ScriptedToolCall } from '../chat/scripted-answer.js';
export {
  type AnsweredCall,
  type ModelAnswer,
  type ModelCall,
  type ModelScript,
  type ScriptedModel,
  scriptedModel,
} from '../chat/scripted-model.js';
export { type ReplyTurn, streamReply, type StreamReplyOptions } from './stream-reply.js';
export { type UIChunk, type UIMessage, type UIPart } from '../chat/ui-message.js';
export { type UIStream, uiStream, type UITurn } from '../chat/ui-stream.js';
