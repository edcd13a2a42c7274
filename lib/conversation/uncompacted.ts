import { type CheckpointStore } from '../ledger/checkpoint.store.js';
import { type Checkpoint } from '../ledger/checkpoint.js';
import { type ConversationLog } from '../ledger/conversation.store.js';
import { isPinned } from './conversation-head.js';
import { type ConversationMessage } from '../ledger/message.js';
import { wholeCut } from './tool-pairs.js';
import { undoneBy, withoutUndone } from './undone-messages.js';

/** The maximum number of messages per summary. */
const MAX_PASS = 200;

/** The part of a log that is not summarized, in two parts. */
export interface Uncompacted {
  /** The oldest messages, at most {@link MAX_PASS}. */
  readonly replaced: readonly ConversationMessage[];
  /** The following messages that were read. */
  readonly rest: readonly ConversationMessage[];
  /** True if there are more messages to replace than fit one summary. */
  readonly more: boolean;
  /** The position of the last message that was read, even if it does not count; `null` if none exists. */
  readonly last: number | null;
}

/** The latest checkpoints of the orchestrators that wrote messages in a session. */
export type AuthorCheckpoints = Map<string, Checkpoint | null>;

/**
 * Reads the messages after a position, without those that were undone, and splits them so that `keep` messages are
 * kept; more if a call would be separated from its results.
 * @param from the epoch of the log, and the position to read after
 * @param keptOf returns how many of the last `keep` messages are kept
 * @param checkpoints receives those of the orchestrators that wrote messages
 */
export async function readUncompacted(
  conversations: ConversationLog,
  store: CheckpointStore,
  sessionId: string,
  from: { readonly log: string; readonly after: number },
  keep: number,
  keptOf: (last: readonly ConversationMessage[]) => number,
  checkpoints: AuthorCheckpoints,
): Promise<Uncompacted> {
  // One more than fit, which shows whether more follow.
  const limit = MAX_PASS + keep + 1;
  const messages: ConversationMessage[] = [];
  let end = false;
  let last = from.after;
  while (messages.length < limit && !end) {
    const page = await conversations.page(sessionId, { after: last, limit });
    end = page.length < limit;
    last = page.at(-1)?.position ?? last;
    // Load after the messages, so that everything undone until now is known.
    for (const name of new Set(page.flatMap(({ orchestrator }) => orchestrator ?? []))) {
      checkpoints.set(name, await store.load(name, sessionId));
    }
    messages.push(
      ...withoutUndone(page, undoneBy(checkpoints.values(), from.log)).filter((message) => !isPinned(message)),
    );
  }
  const kept = end ? keptOf(messages.slice(Math.max(0, messages.length - keep))) : keep;
  const spare = messages.length - kept;
  const more = !end || spare > MAX_PASS;
  const at = Math.max(0, Math.min(spare, MAX_PASS));
  // Calls longer than a whole pass are split anyway; the next pass contains the rest.
  const cut = wholeCut(messages, at) || (more ? at : 0);
  return {
    replaced: messages.slice(0, cut),
    rest: messages.slice(cut),
    more: more && cut > 0,
    last: last > from.after ? last : null,
  };
}
