import { type CheckpointStore } from '../ledger/checkpoint.store.js';
import { type ConversationHead, isPinned } from './conversation-head.js';
import { type ConversationHeads } from './conversation-heads.js';
import { type ConversationLog } from '../ledger/conversation.store.js';
import { loadMissing } from './kept-messages.js';
import { type ConversationMessage, type MessageSpan } from '../ledger/message.js';
import { type AuthorCheckpoints } from './uncompacted.js';
import { countIn, undoneBy, withoutUndone } from './undone-messages.js';

/** The message counts of a conversation. */
export interface ConversationCounts {
  /** The number of messages in the log. */
  readonly messageCount: number;
  /**
   * The number of messages available to windows: the leading system message, the summary, and later messages that were
   * not undone.
   */
  readonly windowCount: number;
  /** Windows start after this position; 0: no message is hidden. */
  readonly through: number;
}

/** Reads the end of the log, the head, and the checkpoints that record what was undone. */
export async function countConversation(
  adapter: { readonly conversations: ConversationLog; readonly checkpoints: CheckpointStore },
  heads: ConversationHeads,
  orchestrators: readonly string[],
  sessionId: string,
): Promise<ConversationCounts> {
  const [ends, head] = await Promise.all([adapter.conversations.window(sessionId, 1), heads.peek(sessionId)]);
  const { log, hiddenThrough: through } = head;
  const last = ends.at(-1);
  if (!last) return { messageCount: 0, windowCount: 0, through };
  const checkpoints = await checkpointsAt(ends, adapter.checkpoints, orchestrators, sessionId);
  const windowCount = countWindow(head, ends, undoneBy(checkpoints.values(), log));
  // Positions start at 1 without gaps.
  return { messageCount: last.position, windowCount, through };
}

/** @param ends the last message, preceded by the first one if that is a system message */
export function countWindow(
  { hiddenThrough, shown }: ConversationHead,
  ends: readonly ConversationMessage[],
  undone: readonly MessageSpan[],
): number {
  const pinned = ends.filter(isPinned);
  const span = { from: Math.max(hiddenThrough, pinned.length) + 1, through: ends.at(-1)?.position ?? 0 };
  return withoutUndone(pinned, undone).length + (shown ? 1 : 0) + countIn(span, undone);
}

/** Returns the latest checkpoints of these orchestrators and of those that wrote the first and the last message. */
export async function checkpointsAt(
  ends: readonly ConversationMessage[],
  store: CheckpointStore,
  orchestrators: readonly string[],
  sessionId: string,
): Promise<AuthorCheckpoints> {
  const checkpoints: AuthorCheckpoints = new Map();
  const authors = ends.flatMap(({ orchestrator }) => orchestrator ?? []);
  await loadMissing(store, sessionId, [...orchestrators, ...authors], checkpoints);
  return checkpoints;
}
