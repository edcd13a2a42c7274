import { type CheckpointStore } from '../ledger/checkpoint.store.js';
import { type ConversationLog } from '../ledger/conversation.store.js';
import { isPinned } from './conversation-head.js';
import { type Message } from '../ledger/message.js';
import { readBackwards } from './read-backwards.js';
import { hasCallsFrom, wholeCut, wholeCutAfter } from './tool-pairs.js';
import { type SpeakersCheckpoints } from './uncompacted.js';
import { undoneBy, withoutUndone } from './undone-messages.js';

/** Which messages of a conversation stay: the newest that fit. */
export interface KeepRule {
  readonly budget: number;
  /** What a message takes of the budget. */
  readonly cost: (message: Message) => number;
  /** The last messages, which stay also beyond the budget, with the calls that they answer. */
  readonly preserve: number;
}

/** The messages of a log between two positions that nothing was taken back of, as far as they had to be read. */
export interface ReadMessages {
  readonly messages: readonly Message[];
  /** How many of them go; 0: all stay, and all were read. */
  readonly cut: number;
  /** There are none before them. */
  readonly all: boolean;
}

/** Where a list is cut so that what follows is kept, and no call is separated from its results. */
export function keptFrom(messages: readonly Message[], { budget, cost, preserve }: KeepRule): number {
  let left = budget;
  const tooMuch = messages.findLastIndex((message) => (left -= cost(message)) < 0);
  const preserved = wholeCut(messages, Math.max(0, messages.length - preserve));
  return Math.min(wholeCutAfter(messages, tooMuch + 1), preserved);
}

/**
 * Reads what stays, from the end on, and little of what goes.
 * @param between positions that are not read themselves
 * @param checkpoints is given those of the orchestrators that speak in it
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
  checkpoints: SpeakersCheckpoints,
): Promise<ReadMessages> {
  let messages: readonly Message[] = [];
  let cut = 0;
  let all = true;
  for await (const page of readBackwards(conversations, sessionId, between)) {
    await meet(
      store,
      sessionId,
      page.flatMap(({ orchestrator }) => orchestrator ?? []),
      checkpoints,
    );
    const counted = withoutUndone(page, undoneBy(checkpoints.values(), log)).filter((message) => !isPinned(message));
    messages = [...counted, ...messages];
    cut = keptFrom(messages, rule);
    all = page.length === 0 || page[0].position <= between.after + 1;
    // The call of a result may stand further back.
    if (cut > 0 && hasCallsFrom(messages, cut)) break;
  }
  return { messages, cut, all };
}

/** Loads the latest checkpoints of those that were not met before. */
export async function meet(
  store: CheckpointStore,
  sessionId: string,
  names: readonly string[],
  checkpoints: SpeakersCheckpoints,
): Promise<void> {
  const strangers = [...new Set(names)].filter((name) => !checkpoints.has(name));
  const loaded = await Promise.all(strangers.map((name) => store.load(name, sessionId)));
  for (const [index, name] of strangers.entries()) checkpoints.set(name, loaded[index]);
}
