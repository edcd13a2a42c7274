import { type CheckpointStore } from '../ledger/checkpoint.store.js';
import { type ConversationLog } from '../ledger/conversation.store.js';
import { isPinned } from './conversation-head.js';
import { type ConversationMessage } from '../ledger/message.js';
import { readBackwards } from './read-backwards.js';
import { hasCallsFrom, wholeCut, wholeCutAfter } from './tool-pairs.js';
import { type AuthorCheckpoints } from './uncompacted.js';
import { undoneBy, withoutUndone } from './undone-messages.js';

/** The number of messages before the cut among which the call of a kept result is searched. It may not exist. */
const MAX_DISTANCE = 1000;

/** Which messages of a conversation to keep: the newest that fit. */
export interface KeepRule {
  readonly budget: number;
  /** Returns the cost of a message in units of the budget. */
  readonly cost: (message: ConversationMessage) => number;
  /** The number of last messages that are kept even beyond the budget, with the calls that they answer. */
  readonly preserve: number;
}

/** The messages of a log between two positions, without those that were undone, as far as they had to be read. */
export interface ReadMessages {
  readonly messages: readonly ConversationMessage[];
  /** How many of them are cut; 0: all are kept, and all were read. */
  readonly cut: number;
  /** True if no messages precede them. */
  readonly all: boolean;
}

/** Returns where to cut a list so that the messages to keep follow and no call is separated from its results. */
export function keptFrom(messages: readonly ConversationMessage[], { budget, cost, preserve }: KeepRule): number {
  let left = budget;
  const tooMuch = messages.findLastIndex((message) => (left -= cost(message)) < 0);
  const preserved = wholeCut(messages, Math.max(0, messages.length - preserve));
  return Math.min(wholeCutAfter(messages, tooMuch + 1), preserved);
}

/**
 * Reads the messages to keep, from the end, and few of the others.
 * @param between exclusive bounds
 * @param checkpoints receives the checkpoints of the orchestrators found in the messages
 */
export async function readKept(
  {
    conversations,
    checkpoints: store,
  }: { readonly conversations: ConversationLog; readonly checkpoints: CheckpointStore },
  sessionId: string,
  log: string,
  between: { readonly after: number; readonly before: number },
  rule: KeepRule,
  checkpoints: AuthorCheckpoints,
): Promise<ReadMessages> {
  let messages: readonly ConversationMessage[] = [];
  let cut = 0;
  let all = true;
  for await (const page of readBackwards(conversations, sessionId, between)) {
    await loadMissing(
      store,
      sessionId,
      page.flatMap(({ orchestrator }) => orchestrator ?? []),
      checkpoints,
    );
    const counted = withoutUndone(page, undoneBy(checkpoints.values(), log)).filter((message) => !isPinned(message));
    messages = [...counted, ...messages];
    cut = keptFrom(messages, rule);
    all = page.length === 0 || page[0].position <= between.after + 1;
    // The call of a result may be further back.
    if (cut > 0 && (cut >= MAX_DISTANCE || hasCallsFrom(messages, cut))) break;
  }
  return { messages, cut, all };
}

/** Loads the latest checkpoints of orchestrators that are not loaded yet. */
export async function loadMissing(
  store: CheckpointStore,
  sessionId: string,
  names: readonly string[],
  checkpoints: AuthorCheckpoints,
): Promise<void> {
  const missing = [...new Set(names)].filter((name) => !checkpoints.has(name));
  const loaded = await Promise.all(missing.map((name) => store.load(name, sessionId)));
  for (const [index, name] of missing.entries()) checkpoints.set(name, loaded[index]);
}
