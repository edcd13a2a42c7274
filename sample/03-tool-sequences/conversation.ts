import { type ToolCall } from './airline-model.js';

/** A message in the format of OpenAI's chat completions. */
export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string | null;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
  readonly tool_call_id?: string;
}

export interface Conversation {
  readonly id: string;
  readonly messages: readonly ChatMessage[];
}

/** A user message, and everything up to the next one. */
export interface RecordedTurn {
  readonly said: string;
  /** The tool calls of the model, by answer. */
  readonly calls: readonly (readonly ToolCall[])[];
  /** The tool results, by call id. */
  readonly results: ReadonlyMap<string, string>;
  /** The final answer to the user; empty if the recording ends before it. */
  readonly answer: string;
}

export function turnsOf({ messages }: Conversation): readonly RecordedTurn[] {
  const starts = messages.flatMap(({ role }, at) => (role === 'user' ? [at] : []));
  return starts.map((start, at) => turnOf(messages.slice(start, starts[at + 1])));
}

function turnOf([user, ...others]: readonly ChatMessage[]): RecordedTurn {
  const answers = others.filter(({ role }) => role === 'assistant');
  const results = others.filter(({ role }) => role === 'tool');
  return {
    said: user.content ?? '',
    calls: answers.flatMap(({ tool_calls: calls = [] }) => (calls.length > 0 ? [calls.map(toCall)] : [])),
    results: new Map(results.map(({ tool_call_id: id = '', content }) => [id, content ?? ''])),
    answer: answers.findLast(({ tool_calls: calls = [] }) => calls.length === 0)?.content ?? '',
  };
}

function toCall(call: NonNullable<ChatMessage['tool_calls']>[number]): ToolCall {
  const { name, arguments: args } = call.function;
  return { id: call.id, name, arguments: args };
}
