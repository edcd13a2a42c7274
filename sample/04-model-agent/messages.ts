import { type AssistantModelMessage, type LanguageModelUsage, type ModelMessage, type ToolModelMessage } from 'ai';
import { type JsonObject, type MessageDraft, type TokenCountsInput } from 'nestjs-agent-sessions';

// Maps the messages and token counts of the package to those of the AI SDK.

/** Returns the earlier messages for a model. */
export function toModelMessages(history: readonly MessageDraft[]): ModelMessage[] {
  return history.map(({ role, content, name: toolName = '', toolCalls = [], toolCallId = '' }) => {
    const text = textOf(content);
    if (role === 'tool') {
      return { role, content: [{ type: 'tool-result', toolCallId, toolName, output: { type: 'text', value: text } }] };
    }
    if (role !== 'assistant') return { role, content: text };
    const calls = toolCalls.map((call) => {
      return { type: 'tool-call' as const, toolCallId: call.id, toolName: call.name, input: call.arguments };
    });
    return { role, content: [...(text ? [{ type: 'text' as const, text }] : []), ...calls] };
  });
}

/** Returns the messages of a model and its tools for the conversation. */
export function toMessages(said: readonly (AssistantModelMessage | ToolModelMessage)[]): MessageDraft[] {
  return said.flatMap((message) => (message.role === 'tool' ? resultsOf(message) : answerOf(message)));
}

/** Formats a conversation for reading, a line per message. */
export function toTranscript(messages: readonly MessageDraft[]): string {
  return messages
    .map(({ role, content, name, toolCalls = [] }) => {
      const calls = toolCalls.map((call) => `${call.name}(${JSON.stringify(call.arguments)})`);
      return `${name ?? role}: ${[textOf(content), ...calls].filter(Boolean).join(' ')}`;
    })
    .join('\n');
}

/** Returns token counts for `turn.usage.add`. */
export function toUsage({ inputTokens = 0, outputTokens = 0 }: LanguageModelUsage): TokenCountsInput {
  return { promptTokens: inputTokens, completionTokens: outputTokens };
}

function answerOf({ content }: AssistantModelMessage): MessageDraft {
  const parts = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content;
  const text = parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
  const toolCalls = parts.flatMap((part) =>
    part.type === 'tool-call'
      ? [{ id: part.toolCallId, name: part.toolName, arguments: part.input as JsonObject }]
      : [],
  );
  return { role: 'assistant', content: text || null, ...(toolCalls.length > 0 ? { toolCalls } : {}) };
}

/** Splits tool results: the SDK combines the results of several calls in one message; this package, like most providers, has one message each. */
function resultsOf({ content }: ToolModelMessage): MessageDraft[] {
  return content.flatMap((part) => {
    if (part.type !== 'tool-result') return [];
    const { toolCallId, toolName: name, output } = part;
    const value = 'value' in output ? output.value : output.reason;
    return [{ role: 'tool', name, toolCallId, content: typeof value === 'string' ? value : JSON.stringify(value) }];
  });
}

function textOf(content: MessageDraft['content']): string {
  if (content === null || typeof content === 'string') return content ?? '';
  return content.map(({ text }) => (typeof text === 'string' ? text : '')).join('');
}
