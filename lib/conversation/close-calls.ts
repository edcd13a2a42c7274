import { sha256 } from '../common/digests.js';
import { isId } from '../common/ids.js';
import { interruptedResult } from '../ledger/interrupted-result.js';
import { type MessageDraft } from '../ledger/message.js';
import { callsIn, resultsIn, type ToolCall, withResults } from './calls-in.js';
import { hasTools, pairsOf } from './tool-pairs.js';

/** Ids of calls that the message after a list answers. */
export type AnsweredNext = ReadonlySet<string>;

const NONE: AnsweredNext = new Set();
const NO_RESULTS: ReadonlyMap<string, number | undefined> = new Map();

/**
 * Returns the messages as models accept them (FIX-60): each call is followed by exactly one result, and each result
 * follows its call.
 *
 * - A result is moved directly after its call. A repeated result, and one without a call, are removed.
 * - A call without a result gets an `interrupted` one, unless the next message of the user has its result. That result
 *   gets the position of the call.
 */
export function closeCalls<M extends MessageDraft>(
  messages: readonly M[],
  answeredNext: AnsweredNext = NONE,
): readonly M[] {
  if (!hasTools(messages)) return messages;
  const { calls, callOf } = pairsOf(messages);
  const withoutResults = messagesWithoutResults(messages, callOf);
  /** The calls before the next message that have no result of a tool. */
  let open = NONE;
  return messages.flatMap((message, index): M[] => {
    if (message.role === 'tool') return [];
    const own = message.role === 'user' ? withResults(message, (id) => open.has(id)) : message;
    const results = calls.get(index) ?? NO_RESULTS;
    const answering = new Set([...results.values(), ...(withoutResults.get(index) ?? [])]);
    const answers = [...answering]
      .filter((at) => at !== undefined)
      .filter((at) => messages[at].role === 'tool')
      .sort((a, b) => a - b)
      .map((at) => withResults(messages[at], (id) => results.get(id) === at));
    const unanswered = callsIn(message).filter(({ id }) => !isOfTool(messages[results.get(id) ?? -1]));
    open = new Set(unanswered.map(({ id }) => id));
    const next = open.size > 0 ? nextOf(messages, index, answeredNext) : NONE;
    const interrupted = unanswered
      .filter(({ id }) => !next.has(id))
      .map((call, at) => interruptedAt(message, call, at));
    return [...(isEmptied(message, own) ? [] : [own]), ...answers, ...interrupted];
  });
}

/** Returns the positions of messages of tools that have no result, by the position of their call. */
function messagesWithoutResults(
  messages: readonly MessageDraft[],
  callOf: ReadonlyMap<number, number>,
): ReadonlyMap<number, readonly number[]> {
  const found = new Map<number, number[]>();
  for (const [at, call] of callOf) {
    if (messages[at].role !== 'tool' || resultsIn(messages[at]).length > 0) continue;
    const known = found.get(call);
    if (known) known.push(at);
    else found.set(call, [at]);
  }
  return found;
}

/**
 * Returns a window whose calls and results belong together (BOT-40, FIX-60): without the calls whose results were cut
 * off, and as {@link closeCalls} returns it.
 * @param window chosen from the log; may contain new messages
 */
export function keepPairs(
  window: readonly MessageDraft[],
  log: readonly MessageDraft[],
  answeredNext: AnsweredNext,
): readonly MessageDraft[] {
  if (!hasTools(window)) return window;
  const { calls, callOf } = pairsOf(window);
  const expected = answersByMessage(log);
  const broken = new Set<number>([-1]);
  for (const [index, results] of calls) {
    const message = window[index];
    const had = expected.get(message) ?? expected.get(message.id) ?? [...results.keys()];
    if (had.some((id) => results.get(id) === undefined)) broken.add(index);
  }
  const isKept = ({ role }: MessageDraft, index: number): boolean =>
    !broken.has(index) && (role !== 'tool' || !broken.has(callOf.get(index) ?? -1));
  return closeCalls(window.filter(isKept), answeredNext);
}

/** Returns `interrupted` results for the calls of messages that a stopped turn leaves open (FIX-60). */
export function interruptedResults(messages: readonly MessageDraft[]): readonly MessageDraft[] {
  const { calls } = pairsOf(messages);
  return messages.flatMap((message, index) =>
    callsIn(message)
      .filter(({ id }) => calls.get(index)?.get(id) === undefined)
      .map(interruptedResult),
  );
}

/** Returns the ids of the calls that a message of the user answers. */
export function answeredBy(message: MessageDraft): AnsweredNext {
  const ids = resultsIn(message).filter((id) => id !== undefined);
  return ids.length > 0 ? new Set(ids) : NONE;
}

/** Returns the ids of the calls that the message after the one at `index` answers. */
function nextOf(messages: readonly MessageDraft[], index: number, answeredNext: AnsweredNext): AnsweredNext {
  const next = messages.find(({ role }, at) => at > index && role !== 'tool');
  return next ? answeredBy(next) : answeredNext;
}

/** Returns the `interrupted` result of a call, as if it were stored with the call's message. */
function interruptedAt<M extends MessageDraft>(message: M, call: ToolCall, at: number): M {
  const { content: _, metadata: __, toolCalls: ___, name: ____, ...stored } = message;
  if (stored.id === undefined) return { ...stored, ...interruptedResult(call) } as M;
  const id = `${stored.id}.${at}`;
  return { ...stored, ...interruptedResult(call), id: isId(id) ? id : sha256(id) } as M;
}

function isOfTool(message: MessageDraft | undefined): boolean {
  return message?.role === 'tool';
}

/** Returns whether a message contained nothing but results that were removed. */
function isEmptied(message: MessageDraft, { content }: MessageDraft): boolean {
  return content !== message.content && content?.length === 0;
}

/** Returns the answered ids by message and by message id, because a window may contain copies. */
function answersByMessage(log: readonly MessageDraft[]): ReadonlyMap<unknown, readonly string[]> {
  const found = new Map<unknown, readonly string[]>();
  for (const [index, results] of pairsOf(log).calls) {
    const message = log[index];
    const answered = [...results].flatMap(([id, at]) => (at === undefined ? [] : [id]));
    found.set(message, answered);
    if (message.id !== undefined) found.set(message.id, answered);
  }
  return found;
}
