import { type MessageDraft } from '../ledger/message.js';

/** Matches results and calls in any list of messages: parallel calls, results in any order, and reused ids. */
interface Pairs {
  /** The answered ids, by the index of the message with the calls. */
  readonly answers: ReadonlyMap<number, ReadonlySet<string>>;
  /** The index of the call, by the index of its result; -1 without a call. */
  readonly callOf: ReadonlyMap<number, number>;
}

/**
 * Returns a window that a model accepts (BOT-40): without results whose call is missing, and without calls whose
 * results are in the log but not in the window. Unanswered calls are kept.
 * @param window chosen from the log; may contain new messages
 */
export function keepPairs<M extends MessageDraft>(window: readonly M[], log: readonly M[]): readonly M[] {
  if (!window.some(isOfTools)) return window;
  const { answers, callOf } = pairsOf(window);
  const expected = answersByMessage(log);
  const broken = new Set<number>([-1]);
  for (const [index, answered] of answers) {
    const message = window[index];
    const had = expected.get(message) ?? expected.get(message.id) ?? new Set(message.toolCalls?.map(({ id }) => id));
    if ([...had].some((id) => !answered.has(id))) broken.add(index);
  }
  return window.filter((_, index) => !broken.has(index) && !broken.has(callOf.get(index) ?? index));
}

/**
 * Returns the last index at or before `index` where the list can be cut without separating calls from their results.
 */
export function wholeCut(messages: readonly MessageDraft[], index: number): number {
  let cut = Math.min(index, messages.length);
  const spans = [...pairsOf(messages).callOf].filter(([, call]) => call !== -1).reverse();
  for (const [result, call] of spans) {
    if (call < cut && result >= cut) cut = call;
  }
  return cut;
}

/**
 * Returns the first index at or after `index` where the list can be cut without separating calls from their results.
 */
export function wholeCutAfter(messages: readonly MessageDraft[], index: number): number {
  let cut = index;
  for (const [result, call] of pairsOf(messages).callOf) {
    if (call !== -1 && call < cut && result >= cut) cut = result + 1;
  }
  return cut;
}

/** Returns whether the list contains the calls of all results from `index` on. */
export function hasCallsFrom(messages: readonly MessageDraft[], index: number): boolean {
  return [...pairsOf(messages).callOf].every(([result, call]) => result < index || call !== -1);
}

function isOfTools({ role, toolCalls }: MessageDraft): boolean {
  return role === 'tool' || toolCalls !== undefined;
}

function pairsOf(messages: readonly MessageDraft[]): Pairs {
  const answers = new Map<number, Set<string>>();
  const callOf = new Map<number, number>();
  /** The latest call of each id. */
  const calls = new Map<string, number>();
  let latest = -1;
  for (const [index, { role, toolCalls = [], toolCallId }] of messages.entries()) {
    if (toolCalls.length > 0) {
      latest = index;
      answers.set(index, new Set());
      for (const { id } of toolCalls) calls.set(id, index);
    }
    if (role !== 'tool') continue;
    // A result without an id belongs to the call before it.
    const call = toolCallId === undefined ? latest : (calls.get(toolCallId) ?? -1);
    callOf.set(index, call);
    answers.get(call)?.add(toolCallId ?? '');
  }
  return { answers, callOf };
}

/** Returns the answered ids by message and by message id, because a window may contain copies. */
function answersByMessage(log: readonly MessageDraft[]): ReadonlyMap<unknown, ReadonlySet<string>> {
  const found = new Map<unknown, ReadonlySet<string>>();
  for (const [index, answered] of pairsOf(log).answers) {
    const message = log[index];
    found.set(message, answered);
    if (message.id !== undefined) found.set(message.id, answered);
  }
  return found;
}
