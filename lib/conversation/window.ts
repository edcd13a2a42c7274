import { deepFreeze } from '../common/json.js';
import { toHistory } from './message-draft.js';
import { type MessageDraft } from '../ledger/message.js';
import { type MessageTokens } from './message-tokens.js';
import { keepPairs } from './tool-pairs.js';

/** A conversation as a window is cut from it. */
export interface ConversationView<M extends MessageDraft = MessageDraft> {
  /** The log's leading system message, when it has one. */
  readonly pinned: readonly M[];
  /** What stands for the older messages, once they were compacted. */
  readonly summary: M | null;
  /** The newer messages in order, at most `loadLimit`. */
  readonly messages: readonly M[];
}

/**
 * Chooses the messages itself. Pinned messages and the summary go before what it returns, unless they are in it; calls and
 * results that lost each other are left out.
 */
export type WindowFunction = (conversation: ConversationView) => readonly MessageDraft[];

/**
 * How much of a conversation somebody is given (BOT-40): the last messages by number; the last ones that fit a budget of
 * tokens, of which pinned messages and the summary are part; or what a function chooses.
 */
export type WindowShape = number | { readonly maxTokens: number } | WindowFunction;

/** A conversation that is given as a list: the caller's own. */
export function viewOf<M extends MessageDraft>(log: readonly M[]): ConversationView<M> {
  const pinned = log[0]?.role === 'system' ? log.slice(0, 1) : [];
  return { pinned, summary: null, messages: log.slice(pinned.length) };
}

/**
 * Cuts a window (BOT-40). Pinned messages and the summary stay, outside the count of a number, and the cut never separates an
 * assistant's tool calls from their results.
 * @param path names the window in errors
 * @throws InvalidInputError when a function returns something else than messages, or a token counter no number
 */
export function cutWindow(
  shape: WindowShape,
  view: ConversationView,
  tokens: MessageTokens,
  path: string,
): readonly MessageDraft[] {
  const { pinned, summary, messages } = view;
  const lead = summary ? [...pinned, summary] : pinned;
  if (typeof shape === 'number') {
    return shape === 0 ? [] : [...lead, ...keepPairs(messages.slice(-shape), messages)];
  }
  if (typeof shape === 'object') {
    const budget = shape.maxTokens - tokens.ofAll(lead);
    return [...lead, ...keepPairs(lastWithin(budget, messages, tokens), messages)];
  }
  const chosen = chosenBy(shape, view, path);
  const missing = lead.filter((message) => !chosen.some((other) => other === message || isCopy(other, message)));
  return [...missing, ...keepPairs(chosen, messages)];
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

/** What is new among it is checked as a handler's messages are. */
function chosenBy(shape: WindowFunction, view: ConversationView, path: string): readonly MessageDraft[] {
  const known = new Set<unknown>([...view.pinned, view.summary, ...view.messages]);
  const chosen: readonly MessageDraft[] = shape(deepFreeze(view));
  return toHistory(chosen, path).map((checked, index) => (known.has(chosen[index]) ? chosen[index] : checked));
}

function isCopy(one: MessageDraft, other: MessageDraft): boolean {
  return one.id !== undefined && one.id === other.id;
}
