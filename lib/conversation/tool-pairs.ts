import { type MessageDraft } from '../ledger/message.js';

/** Which results answer which call, in any list of messages: parallel calls, results in any order, ids that are used again. */
interface Pairs {
  /** By the index of a message that calls tools: the ids that are answered. */
  readonly answers: ReadonlyMap<number, ReadonlySet<string>>;
  /** By the index of a result: the index of its call; -1 without one. */
  readonly callOf: ReadonlyMap<number, number>;
}

/**
 * A window as a model may be given it (BOT-40): without results whose call is not in it, and without calls that lost results
 * which the log has. A call that nobody has answered yet stays.
 * @param window chosen from the log; messages of its own may be among them
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

/** The last place at or before `index` where the list may be cut in two and every call stays with its results. */
export function wholeCut(messages: readonly MessageDraft[], index: number): number {
  let cut = Math.min(index, messages.length);
  const spans = [...pairsOf(messages).callOf].filter(([, call]) => call !== -1).reverse();
  for (const [result, call] of spans) {
    if (call < cut && result >= cut) cut = call;
  }
  return cut;
}

/** The first place at or after `index` where the list may be cut in two and every call stays with its results. */
export function wholeCutAfter(messages: readonly MessageDraft[], index: number): number {
  let cut = index;
  for (const [result, call] of pairsOf(messages).callOf) {
    if (call !== -1 && call < cut && result >= cut) cut = result + 1;
  }
  return cut;
}

/** Whether the calls of all results from `index` on are in the list. */
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
    // A result that does not say what it answers follows its call.
    const call = toolCallId === undefined ? latest : (calls.get(toolCallId) ?? -1);
    callOf.set(index, call);
    answers.get(call)?.add(toolCallId ?? '');
  }
  return { answers, callOf };
}

/** By message and by its id: a window may hold copies. */
function answersByMessage(log: readonly MessageDraft[]): ReadonlyMap<unknown, ReadonlySet<string>> {
  const found = new Map<unknown, ReadonlySet<string>>();
  for (const [index, answered] of pairsOf(log).answers) {
    const message = log[index];
    found.set(message, answered);
    if (message.id !== undefined) found.set(message.id, answered);
  }
  return found;
}
