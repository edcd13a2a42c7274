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

/** A message of the user, and all that follows up to the next one. */
export interface RecordedTurn {
  readonly said: string;
  /** What the model called, answer by answer. */
  readonly calls: readonly (readonly ToolCall[])[];
  /** What the tools gave, by the ids of calls. */
  readonly results: ReadonlyMap<string, string>;
  /** What the user was told at the end; empty when the record ends before. */
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
