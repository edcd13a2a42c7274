/** The parts of a chat completion request that the script reads. */
export interface ChatRequest {
  readonly model: string;
  readonly stream?: boolean;
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly object[];
  readonly tool_choice?: unknown;
  readonly response_format?: object;
}

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content?: string | null;
  readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly name: string } }[];
  readonly tool_call_id?: string;
}

export interface ChatUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
}

/** An answer: text, tool calls, or both. */
export interface ScriptedAnswer {
  readonly text?: string;
  readonly calls?: readonly { readonly name: string; readonly args: object }[];
}

/** The logic of the scripted provider, which matches words. */
export function scriptedAnswer({
  messages,
  tools,
  tool_choice: choice,
  response_format: format,
}: ChatRequest): ScriptedAnswer {
  const asked = messages.findLastIndex(({ role }) => role === 'user');
  const said = messages[asked]?.content ?? '';
  if (format) return { text: JSON.stringify(sort(said)) };
  if (/^Sum up/.test(messages[0]?.content ?? '')) return { text: sumUp(said) };
  if (!tools) return { text: 'Hello! I can tell you where your orders are, and refund what you do not like.' };
  if (/again and again/i.test(said) && choice !== 'none') return call(said, messages);
  const results = messages.slice(asked + 1).filter(({ role }) => role === 'tool');
  return results.length === 0 ? call(said, messages) : answerFromResults(said, messages, results);
}

function sort(said: string): object {
  return /order|refund|weather|yes|no\b|\d/i.test(said)
    ? { reasoning: 'The message is about an order.', intent: 'orders' }
    : { reasoning: 'The message is about nothing in particular.', intent: 'small-talk' };
}

function sumUp(transcript: string): string {
  const said = transcript.split('\n').flatMap((line) => /^user: (.*)/.exec(line)?.[1] ?? []);
  return `The user has said: ${said.join(' ')}`;
}

/** Requests a refund immediately when the word refund appears. */
function call(said: string, messages: readonly ChatMessage[]): ScriptedAnswer {
  // The tool does not exist.
  if (/weather/i.test(said)) return { calls: [{ name: 'tell_weather', args: {} }] };
  const name = /refund|yes/i.test(said) ? 'refund_order' : 'find_order';
  const calls = ordersIn(messages).map((orderId) => ({ name, args: { orderId } }));
  if (calls.length === 0) return { text: 'Which order is it about?' };
  return /yes/i.test(said) ? { text: 'One moment, please. ', calls } : { calls };
}

function answerFromResults(
  said: string,
  messages: readonly ChatMessage[],
  results: readonly ChatMessage[],
): ScriptedAnswer {
  const contents = results.map(({ content }) => content ?? '');
  const last = contents.at(-1) ?? '';
  if (/not allowed/.test(last)) {
    return { calls: ordersIn(messages).map((orderId) => ({ name: 'find_order', args: { orderId } })) };
  }
  if (/unavailable/.test(last)) return { text: 'That I cannot tell.' };
  const found = contents
    .filter((text) => text.startsWith('{'))
    .map((text) => JSON.parse(text) as Record<string, string>);
  if (found.length === 0) return { text: `Done: ${last}` };
  const orders = found.map(({ id, item, status, euros }) => `Order ${id}, ${item} for ${euros} euros, is ${status}.`);
  return { text: [...orders, ...(/refund/i.test(said) ? ['Shall I refund it? (yes or no)'] : [])].join(' ') };
}

/** Returns the numbers in the latest user message that has any. */
function ordersIn(messages: readonly ChatMessage[]): string[] {
  const said = messages.flatMap(({ role, content }) => (role === 'user' ? [content ?? ''] : [])).reverse();
  return said.map((text) => text.match(/\b\d+\b/g) ?? []).find((numbers) => numbers.length > 0) ?? [];
}
