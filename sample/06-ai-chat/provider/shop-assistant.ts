import { type ChatMessage, type ChatRequest, textOf } from './chat-completions.js';
import { type AskedBefore, type ScriptedAnswer } from './script.js';

/** A real model phrases a repeated answer differently. */
const OPENINGS = ['Sure.', 'Of course.', 'All right.'];

const POLICY = `You can send back what you bought within thirty days after it has reached you.

Put it into a box, print the label that you find in your account, and hand the parcel in at any post office. You do not need the original box. Lamps travel best without their bulbs.

We pay the money back within a week after the parcel has come, the way in which you paid. If something is wrong with what you bought, we pay the postage as well, or send you a new one if you like that better.

Tell me the number of an order, and I look up whether it can still be sent back.`;

/** The order that the tool `findOrder` returns. */
interface Order {
  readonly id: string;
  readonly item: string;
  readonly euros: number;
  readonly status: string;
}

/** The script of the sample: the support of a shop, which matches words. */
export function shopAssistant({ messages }: ChatRequest, { repeats }: AskedBefore): ScriptedAnswer {
  const asked = messages.findLastIndex(({ role }) => role === 'user');
  const question = messages[asked];
  const said = question ? textOf(question) : '';
  const later = messages.slice(asked + 1);
  const opening = OPENINGS[repeats % OPENINGS.length];
  const results = later.filter(({ role }) => role === 'tool');
  const answer = results.length === 0 ? begin(said, messages, question) : proceed(said, later);
  return { ...answer, ...(answer.text === undefined ? {} : { text: `${opening} ${answer.text}` }) };
}

function begin(said: string, messages: readonly ChatMessage[], question?: ChatMessage): ScriptedAnswer {
  if (/polic|send (it )?back|return/i.test(said)) {
    return { reasoning: 'The customer asks how to return something. I know the policy by heart.', text: POLICY };
  }
  const orders = ordersIn(messages);
  if (/refund|money back|order|\d/i.test(said) && orders.length > 0) {
    return {
      reasoning: `This is about ${numbered(orders)}. I look ${orders.length > 1 ? 'them' : 'it'} up first.`,
      calls: orders.map((orderId) => ({ name: 'findOrder', args: { orderId } })),
    };
  }
  if (/refund|money back|order/i.test(said)) return { text: 'What is the number of the order?' };
  if (Array.isArray(question?.content)) return { text: 'I got what you attached. Which order is it about?' };
  return { text: 'I can tell you where an order is, refund it, or explain how to send something back.' };
}

function proceed(said: string, later: readonly ChatMessage[]): ScriptedAnswer {
  const refunds = resultsOf('refundOrder', later);
  if (refunds.length > 0) return { text: refunds.map(describeRefund).join(' ') };
  const found = resultsOf('findOrder', later).map((result) => parse<Order>(result) ?? result);
  const orders = found.filter((each) => typeof each !== 'string');
  const text = found.map((each) => (typeof each === 'string' ? each : describe(each))).join(' ');
  if (!/refund|money back/i.test(said) || orders.length === 0) return { text };
  return {
    text: `${text} The refund needs your approval.`,
    calls: orders.map(({ id, euros }) => ({ name: 'refundOrder', args: { orderId: id, euros } })),
  };
}

function resultsOf(tool: string, messages: readonly ChatMessage[]): string[] {
  const calls = messages.flatMap(({ tool_calls = [] }) => tool_calls);
  const ids = calls.filter((call) => call.function.name === tool).map(({ id }) => id);
  return messages.filter((message) => ids.includes(message.tool_call_id ?? '')).map(textOf);
}

function describe({ id, item, euros, status }: Order): string {
  return `Order ${id}, ${item} for ${euros} euros, is ${status}.`;
}

/** A result that is not a receipt is an error, or the reason why the user denied the refund. */
function describeRefund(result: string): string {
  const refund = parse<{ readonly receipt: string; readonly euros: number }>(result);
  if (refund) return `${refund.euros} euros are on their way. The receipt is ${refund.receipt}.`;
  return /denied/i.test(result) ? 'I have not refunded it.' : `I have not refunded it: ${result}`;
}

function parse<T>(json: string): T | null {
  return json.startsWith('{') ? (JSON.parse(json) as T) : null;
}

function numbered(orders: readonly string[]): string {
  return orders.length === 1 ? `order ${orders[0]}` : `orders ${orders.slice(0, -1).join(', ')} and ${orders.at(-1)}`;
}

/** Returns the numbers in the latest user message that has any. */
function ordersIn(messages: readonly ChatMessage[]): string[] {
  const said = messages
    .filter(({ role }) => role === 'user')
    .map(textOf)
    .reverse();
  return said.map((text) => [...new Set(text.match(/\b\d+\b/g))]).find((numbers) => numbers.length > 0) ?? [];
}
