import { randomUUID } from 'node:crypto';
import { type ChatRequest, type ChatToolCall, type ChatUsage, textOf } from './chat-completions.js';
import { type ScriptedAnswer } from './script.js';

/** An answer in the format of the API. */
export interface Completion {
  /** The answer in one piece. */
  readonly message: object;
  /** The answer in tokens. */
  readonly deltas: readonly object[];
  readonly finishReason: string;
  readonly usage: ChatUsage;
}

/** Gives the tool calls their ids, and splits the answer into tokens. */
export function completionOf(request: ChatRequest, answer: ScriptedAnswer): Completion {
  const { reasoning, text, finish, tokenLength } = answer;
  const split = (value: string): string[] => tokensOf(value, tokenLength);
  const calls = (answer.calls ?? []).map(({ id = `call_${randomUUID()}`, name, args }): ChatToolCall => ({
    id,
    type: 'function',
    function: { name, arguments: JSON.stringify(args) },
  }));
  return {
    message: {
      role: 'assistant',
      content: text ?? null,
      ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    },
    deltas: [
      ...split(reasoning ?? '').map((token) => ({ reasoning_content: token })),
      ...split(text ?? '').map((content) => ({ content })),
      ...calls.flatMap((call, index) => callDeltas(call, index, split)),
    ],
    finishReason: finish ?? (calls.length === 0 ? 'stop' : 'tool_calls'),
    usage: answer.usage ?? usageOf(request, answer),
  };
}

/** A call arrives as its name first, then its arguments as text. */
function callDeltas(call: ChatToolCall, index: number, split: (value: string) => string[]): object[] {
  const { name, arguments: args } = call.function;
  return [
    { tool_calls: [{ ...call, index, function: { name, arguments: '' } }] },
    ...split(args).map((token) => ({ tool_calls: [{ index, function: { arguments: token } }] })),
  ];
}

function tokensOf(value: string, length?: number): string[] {
  if (length === undefined) return value === '' ? [] : value.split(/(?<= )/);
  return value.match(new RegExp(`.{1,${length}}`, 'gsu')) ?? [];
}

function usageOf({ messages }: ChatRequest, { reasoning = '', text = '', calls = [] }: ScriptedAnswer): ChatUsage {
  const prompt = countWords(messages.map(textOf).join(' '));
  const completion = countWords(`${reasoning} ${text}`) + calls.length;
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

function countWords(text: string): number {
  return text.split(/\s+/).filter((word) => word !== '').length;
}
