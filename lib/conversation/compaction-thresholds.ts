import { type Checkpoint } from '../ledger/checkpoint.js';
import { type CompactionPolicy } from './compaction-policy.js';
import { type ConversationHead, isPinned } from './conversation-head.js';
import { type ConversationMessage, type MessageDraft } from '../ledger/message.js';
import { type MessageTokens } from './message-tokens.js';

/** The part of the conversation that a settled turn read and wrote. */
export interface SeenConversation {
  /** The index of the turn's checkpoint. */
  readonly turnIndex: number;
  /** The end of the log at the start of the turn, without messages that were undone. */
  readonly history: readonly ConversationMessage[];
  /** The first position of `history`; earlier messages were not read. */
  readonly from: number;
  /** The messages that the turn added. */
  readonly added: readonly MessageDraft[];
}

/**
 * Returns whether the conversation exceeds the policy (BOT-41): by turns, by tokens, or because messages after the
 * summary no longer fit the agents' window. Reads nothing. Always false without a threshold.
 */
export function isDue(
  policy: CompactionPolicy,
  orchestrator: string,
  head: ConversationHead,
  seen: SeenConversation,
  tokens: MessageTokens,
): boolean {
  const { turnIndex, history, from, added } = seen;
  const { afterTurns, afterTokens, window } = policy;
  if (afterTurns === undefined && afterTokens === undefined) return false;
  const after = (position: number): readonly MessageDraft[] => [
    ...history.filter((message) => message.position > position && !isPinned(message)),
    ...added,
  ];
  // There are more messages than were read.
  const isLong = (position: number): boolean => from > position + 1;
  const uncompacted = after(head.through);
  const counted = after(head.since);
  const size = isLong(head.through) ? lastPosition(seen) - head.through : uncompacted.length;
  if (size > mostKept(policy)) {
    if (afterTurns !== undefined && turnIndex + 1 - uncountedTurns(head, orchestrator) > afterTurns) return true;
    if (afterTokens !== undefined && (isLong(head.since) || tokens.ofAll(counted) > afterTokens)) return true;
  }
  const { agents } = window;
  // New messages alone must fill half a window, so that compaction does not run after every turn.
  if (typeof agents === 'number') return agents > 0 && uncompacted.length > agents && counted.length > agents / 2;
  if (typeof agents === 'function') return false;
  const room = roomIn(agents.maxTokens, head, history, tokens);
  return isLong(head.since) || (tokens.ofAll(uncompacted) > room && tokens.ofAll(counted) > room / 2);
}

/** Restarts the counts after a turn whose conversation could not be compacted. */
export function withRestartedCounts(
  head: ConversationHead,
  orchestrator: string,
  seen: SeenConversation,
): ConversationHead {
  const turns = { ...head.turns, ...Object.fromEntries([[orchestrator, seen.turnIndex + 1]]) };
  return { ...head, turns, since: lastPosition(seen) };
}

/** The maximum number of recent messages to keep: at most half of the agents' window. */
export function mostKept({ keep, window: { agents, loadLimit } }: CompactionPolicy): number {
  if (typeof agents === 'function' || agents === 0) return keep;
  return Math.min(keep, Math.floor((typeof agents === 'number' ? agents : loadLimit) / 2));
}

/**
 * Returns how many of the given messages to keep, from the last: all, or as many as fit half of the agents' window if
 * that is measured in tokens.
 */
export function keptOf(
  last: readonly ConversationMessage[],
  { window: { agents } }: CompactionPolicy,
  head: ConversationHead,
  tokens: MessageTokens,
): number {
  if (typeof agents !== 'object') return last.length;
  let left = roomIn(agents.maxTokens, head, [], tokens) / 2;
  return last.length - 1 - last.findLastIndex((message) => (left -= tokens.of(message)) < 0);
}

/**
 * Returns the position after which tokens are counted: the end of the summarized messages. Kept messages count for at
 * most half of a threshold and half of the load limit, so that they alone do not trigger the next compaction.
 */
export function countedFrom(
  { afterTokens, window: { loadLimit } }: CompactionPolicy,
  through: number,
  kept: readonly ConversationMessage[],
  tokens: MessageTokens,
): number {
  let messages = loadLimit / 2;
  let left = (afterTokens ?? 0) / 2;
  const tooMuch = (message: ConversationMessage): boolean =>
    afterTokens !== undefined && (left -= tokens.of(message)) < 0;
  const first = kept.findLastIndex((message) => (messages -= 1) < 0 || tooMuch(message));
  return first === -1 ? through : kept[first].position;
}

/**
 * Returns the number of turns by orchestrator that thresholds no longer count: all so far, without those that wrote the
 * kept messages. Of these, at most half of the threshold counts, as in {@link countedFrom}.
 */
export function uncountedTurnsOf(
  { afterTurns }: Pick<CompactionPolicy, 'afterTurns'>,
  orchestrator: string | null,
  checkpoints: ReadonlyMap<string, Checkpoint | null>,
  kept: readonly ConversationMessage[],
): Record<string, number> {
  const turnsOf = (name: string): number =>
    new Set(kept.filter((message) => message.orchestrator === name).map(({ turnId }) => turnId)).size;
  return Object.fromEntries(
    [...checkpoints].map(([name, checkpoint]) => {
      const most = name === orchestrator && afterTurns ? Math.floor(afterTurns / 2) : Infinity;
      return [name, (checkpoint?.turnIndex ?? -1) + 1 - Math.min(turnsOf(name), most)];
    }),
  );
}

/** The minimum end of the log after the turn was settled. */
function lastPosition({ history, added }: SeenConversation): number {
  return (history.at(-1)?.position ?? 0) + added.length;
}

function uncountedTurns({ turns }: ConversationHead, orchestrator: string): number {
  // Object.hasOwn: the orchestrator's name is user data.
  return Object.hasOwn(turns, orchestrator) ? turns[orchestrator] : 0;
}

/** Returns the tokens that a window has left besides its fixed messages; at least half of its tokens. */
function roomIn(
  maxTokens: number,
  { summary }: ConversationHead,
  log: readonly ConversationMessage[],
  tokens: MessageTokens,
): number {
  const lead = [...log.filter(isPinned), ...(summary ? [summary] : [])];
  return Math.max(maxTokens - tokens.ofAll(lead), maxTokens / 2);
}
