import { deepFreeze } from '../common/json.js';
import { toHistory } from './message-draft.js';
import { type MessageDraft } from '../ledger/message.js';
import { type MessageTokens } from './message-tokens.js';
import { type AnsweredNext, closeCalls, keepPairs } from './close-calls.js';

/** The conversation that a window is cut from. */
export interface ConversationView<M extends MessageDraft = MessageDraft> {
  /** The log's leading system message, if it has one. */
  readonly pinned: readonly M[];
  /** The summary that replaces older messages after a compaction. */
  readonly summary: M | null;
  /** The newer messages in order, at most `loadLimit`. */
  readonly messages: readonly M[];
}

/**
 * Chooses the messages of a window. Pinned messages and the summary are prepended, unless the result contains them.
 * Results without calls, and calls whose results are left out, are removed. Calls that have no result have an
 * `interrupted` one.
 */
export type WindowFunction = (conversation: ConversationView) => readonly MessageDraft[];

/**
 * The part of a conversation to pass on (BOT-40): the last messages by number; the last messages that fit a token
 * budget, which includes pinned messages and the summary; or the choice of a function.
 */
export type WindowShape = number | { readonly maxTokens: number } | WindowFunction;

/** Returns the view of a conversation that the caller passed as a list. */
export function viewOf<M extends MessageDraft>(log: readonly M[]): ConversationView<M> {
  const pinned = log[0]?.role === 'system' ? log.slice(0, 1) : [];
  return { pinned, summary: null, messages: log.slice(pinned.length) };
}

/**
 * Cuts a window (BOT-40). Pinned messages and the summary are kept and do not count for a number. The cut never
 * separates an assistant's tool calls from their results, and each call has a result (FIX-60).
 * @param path names the window in errors
 * @param answeredNext the calls that the input after the window answers
 * @throws InvalidInputError if a function does not return messages, or a token counter does not return a number
 */
export function cutWindow(
  shape: WindowShape,
  view: ConversationView,
  tokens: MessageTokens,
  path: string,
  answeredNext: AnsweredNext = new Set(),
): readonly MessageDraft[] {
  const { pinned, summary } = view;
  const messages = closeCalls(view.messages, answeredNext);
  const lead = summary ? [...pinned, summary] : pinned;
  if (typeof shape === 'number') {
    return shape === 0 ? [] : [...lead, ...keepPairs(messages.slice(-shape), messages, answeredNext)];
  }
  if (typeof shape === 'object') {
    const budget = shape.maxTokens - tokens.ofAll(lead);
    return [...lead, ...keepPairs(lastWithin(budget, messages, tokens), messages, answeredNext)];
  }
  const chosen = chosenBy(shape, { pinned, summary, messages }, path);
  const missing = lead.filter((message) => !chosen.some((other) => other === message || isCopy(other, message)));
  return [...missing, ...keepPairs(chosen, messages, answeredNext)];
}

function lastWithin<M extends MessageDraft>(
  budget: number,
  messages: readonly M[],
  tokens: MessageTokens,
): readonly M[] {
  let start = messages.length;
  for (let left = budget; start > 0; start -= 1) {
    left -= tokens.of(messages[start - 1]);
    if (left < 0) break;
  }
  return messages.slice(start);
}

/** Validates new messages of a window function like those of a handler. */
function chosenBy(shape: WindowFunction, view: ConversationView, path: string): readonly MessageDraft[] {
  const known = new Set<unknown>([...view.pinned, view.summary, ...view.messages]);
  const chosen: readonly MessageDraft[] = shape(deepFreeze(view));
  return toHistory(chosen, path).map((checked, index) => (known.has(chosen[index]) ? chosen[index] : checked));
}

function isCopy(one: MessageDraft, other: MessageDraft): boolean {
  return one.id !== undefined && one.id === other.id;
}
