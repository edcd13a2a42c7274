import { type CheckpointStore } from '../ledger/checkpoint.store.js';
import { type ConversationHead, isPinned } from './conversation-head.js';
import { type ConversationHeads } from './conversation-heads.js';
import { type ConversationLog } from '../ledger/conversation.store.js';
import { meet } from './kept-messages.js';
import { type Message, type MessageSpan } from '../ledger/message.js';
import { type SpeakersCheckpoints } from './uncompacted.js';
import { countIn, undoneBy, withoutUndone } from './undone-messages.js';

/** A conversation in numbers. */
export interface ConversationCounts {
  /** Messages of the log. */
  readonly messageCount: number;
  /** What windows are cut from: the leading system message, the summary, and the later messages that were not taken back. */
  readonly windowCount: number;
  /** Messages up to this position are in no window; 0: all are. */
  readonly through: number;
}

/** Reads the end of the log, the head, and the checkpoints that record what was taken back. */
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
  const checkpoints = await speakersAt(ends, adapter.checkpoints, orchestrators, sessionId);
  const windowCount = countWindow(head, ends, undoneBy(checkpoints.values(), log));
  // Positions begin at 1, and there are no gaps.
  return { messageCount: last.position, windowCount, through };
}

/** @param ends the last message, led by the first one when that is a system message */
export function countWindow(
  { hiddenThrough, shown }: ConversationHead,
  ends: readonly Message[],
  undone: readonly MessageSpan[],
): number {
  const pinned = ends.filter(isPinned);
  const span = { from: Math.max(hiddenThrough, pinned.length) + 1, through: ends.at(-1)?.position ?? 0 };
  return withoutUndone(pinned, undone).length + (shown ? 1 : 0) + countIn(span, undone);
}

/** The latest checkpoints of these orchestrators and of those that spoke at the ends of the log. */
export async function speakersAt(
  ends: readonly Message[],
  store: CheckpointStore,
  orchestrators: readonly string[],
  sessionId: string,
): Promise<SpeakersCheckpoints> {
  const checkpoints: SpeakersCheckpoints = new Map();
  const speakers = ends.flatMap(({ orchestrator }) => orchestrator ?? []);
  await meet(store, sessionId, [...orchestrators, ...speakers], checkpoints);
  return checkpoints;
}
