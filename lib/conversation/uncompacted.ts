import { type CheckpointStore } from '../ledger/checkpoint.store.js';
import { type Checkpoint } from '../ledger/checkpoint.js';
import { type ConversationLog } from '../ledger/conversation.store.js';
import { isPinned } from './conversation-head.js';
import { type Message } from '../ledger/message.js';
import { wholeCut } from './tool-pairs.js';
import { undoneBy, withoutUndone } from './undone-messages.js';

/** Messages that one summary takes in at most. */
const MAX_PASS = 200;

/** The part of a log that is not behind a summary, in two. */
export interface Uncompacted {
  /** The oldest, at most {@link MAX_PASS}. */
  readonly replaced: readonly Message[];
  /** What follows, as far as it was read. */
  readonly rest: readonly Message[];
  /** There is more to replace than fits one summary. */
  readonly more: boolean;
  /** The position of the last message that was read, whatever it is; `null` when there is none. */
  readonly last: number | null;
}

/** The latest checkpoints of those that speak in a session. */
export type SpeakersCheckpoints = Map<string, Checkpoint | null>;

/**
 * Reads what follows a position, without messages of turns that were taken back, and cuts it so that `keep` messages stay, or
 * some more where a call would be cut from its results.
 * @param from the epoch of the log, and the position that it is read after
 * @param keptOf of the last `keep` messages, how many stay
 * @param checkpoints is given those of the orchestrators that speak in it
 */
export async function readUncompacted(
  conversations: ConversationLog,
  store: CheckpointStore,
  sessionId: string,
  from: { readonly log: string; readonly after: number },
  keep: number,
  keptOf: (last: readonly Message[]) => number,
  checkpoints: SpeakersCheckpoints,
): Promise<Uncompacted> {
  const limit = MAX_PASS + keep;
  const messages: Message[] = [];
  let end = false;
  let last = from.after;
  while (messages.length < limit && !end) {
    const page = await conversations.page(sessionId, { after: last, limit });
    end = page.length < limit;
    last = page.at(-1)?.position ?? last;
    // After the messages: what was taken back until now is known then.
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
  // Calls that are longer than a whole pass are cut all the same: the next pass has the rest.
  const cut = wholeCut(messages, at) || (more ? at : 0);
  return {
    replaced: messages.slice(0, cut),
    rest: messages.slice(cut),
    more: more && cut > 0,
    last: last > from.after ? last : null,
  };
}
