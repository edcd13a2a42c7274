/**
 * Durable models, tools and chat answers with the AI SDK, version 6 or 7. `streamReply` answers a turn with a model and
 * streams the answer to chat front ends. For your own loops, `durableModel` and `durableTools` store the calls of a
 * model and of its tools as steps of the turn. Later attempts use the stored results instead of calling again.
 *
 * @packageDocumentation
 * @module nestjs-agent-sessions/ai-sdk
 */

// Answers
export { streamReply, type ReplyTurn, type StreamReplyOptions } from './stream-reply.js';
export { AnswerError } from '../chat/chat.errors.js';

// Durable models and tools
export { type AnyLanguageModel } from './language-model.js';
export { durableCalls } from './durable-calls.js';
export { type DurableModel, durableModel, DurableModelOptions } from './durable-model.js';
export { durableTools, DurableToolsOptions, type ToolTurn } from './durable-tools.js';
export { idempotencyKeyOf } from './tool-call.js';
export { type ModelTurn } from './model-calls.js';

// Signals of the user
export { ApprovalAnswer, ToolOutput } from './user-answers.js';
export { approvalSignal, type RepeatedCall, toolOutputSignal } from '../chat/user-signals.js';

// Messages and streams
export { fromModelMessages, toModelMessages, type ModelMessagesOptions } from './model-messages.js';
export { fromUIMessage, toUIMessages } from './ui-messages.js';
export { type AnyUIMessage, type UIChunk, type UIPart } from '../chat/ui-message.js';
export { type UIStream, uiStream, type UITurn } from '../chat/ui-stream.js';

// Scripted models
export { type ScriptedModelAnswer, type ScriptedToolCall } from '../chat/scripted-answer.js';
export {
  type AnsweredCall,
  type ModelAnswer,
  type ModelCall,
  type ModelScript,
  type ScriptedModel,
  scriptedModel,
} from '../chat/scripted-model.js';
