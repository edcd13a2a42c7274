import { type Checkpoint } from '../ledger/checkpoint.js';
import { type CompactionPolicy } from './compaction-policy.js';
import { type ConversationHead, isPinned } from './conversation-head.js';
import { type Message, type MessageDraft } from '../ledger/message.js';
import { type MessageTokens } from './message-tokens.js';

/** What a turn that has settled saw of its conversation. */
export interface SeenConversation {
  /** The index of its checkpoint. */
  readonly turnIndex: number;
  /** The end of the log as the turn began, without messages of turns that were taken back. */
  readonly history: readonly Message[];
  /** The position that the history begins with; what stands before was not read. */
  readonly from: number;
  /** What the turn added. */
  readonly added: readonly MessageDraft[];
}

/**
 * Whether the conversation has grown beyond what the policy allows (BOT-41): by turns, by tokens, or because what is not behind
 * the summary does not fit the agents' window any more. Reads nothing. Never without a threshold.
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
  // There are more than could be counted.
  const isLong = (position: number): boolean => from > position + 1;
  const uncompacted = after(head.through);
  const counted = after(head.since);
  const size = isLong(head.through) ? lastPosition(seen) - head.through : uncompacted.length;
  if (size > mostKept(policy)) {
    if (afterTurns !== undefined && turnIndex + 1 - countedTurns(head, orchestrator) > afterTurns) return true;
    if (afterTokens !== undefined && (isLong(head.since) || tokens.ofAll(counted) > afterTokens)) return true;
  }
  const { agents } = window;
  // What counts anew must fill half a window by itself: so it is done once, and not on every turn.
  if (typeof agents === 'number') return agents > 0 && uncompacted.length > agents && counted.length > agents / 2;
  if (typeof agents === 'function') return false;
  const room = roomIn(agents.maxTokens, head, history, tokens);
  return isLong(head.since) || (tokens.ofAll(uncompacted) > room && tokens.ofAll(counted) > room / 2);
}

/** What cannot be compacted is counted from where the turn has left it. */
export function countedAnew(head: ConversationHead, orchestrator: string, seen: SeenConversation): ConversationHead {
  const turns = { ...head.turns, ...Object.fromEntries([[orchestrator, seen.turnIndex + 1]]) };
  return { ...head, turns, since: lastPosition(seen) };
}

/** How many of the last messages stay as they are: never more than half of the agents' window. */
export function mostKept({ keep, window: { agents, loadLimit } }: CompactionPolicy): number {
  if (typeof agents === 'function' || agents === 0) return keep;
  return Math.min(keep, Math.floor((typeof agents === 'number' ? agents : loadLimit) / 2));
}

/** How many of these last messages stay, where the agents' window is measured in tokens. */
export function keptOf(
  last: readonly Message[],
  { window: { agents } }: CompactionPolicy,
  head: ConversationHead,
  tokens: MessageTokens,
): number {
  if (typeof agents !== 'object') return last.length;
  let left = roomIn(agents.maxTokens, head, [], tokens) / 2;
  return last.length - 1 - last.findLastIndex((message) => (left -= tokens.of(message)) < 0);
}

/**
 * Where tokens are counted from: after what is behind the summary. What is kept counts for half a threshold at most, and for
 * half of what is loaded, so that it does not lead to the next compaction by itself.
 */
export function countedFrom(
  { afterTokens, window: { loadLimit } }: CompactionPolicy,
  through: number,
  kept: readonly Message[],
  tokens: MessageTokens,
): number {
  let messages = loadLimit / 2;
  let left = (afterTokens ?? 0) / 2;
  const tooMuch = (message: Message): boolean => afterTokens !== undefined && (left -= tokens.of(message)) < 0;
  const first = kept.findLastIndex((message) => (messages -= 1) < 0 || tooMuch(message));
  return first === -1 ? through : kept[first].position;
}

/** Where turns are counted from, by orchestrator: as {@link countedFrom}. */
export function countedTurnsOf(
  { afterTurns }: Pick<CompactionPolicy, 'afterTurns'>,
  orchestrator: string | null,
  checkpoints: ReadonlyMap<string, Checkpoint | null>,
  kept: readonly Message[],
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

/** Where the log ended once the turn had settled, at least. */
function lastPosition({ history, added }: SeenConversation): number {
  return (history.at(-1)?.position ?? 0) + added.length;
}

function countedTurns({ turns }: ConversationHead, orchestrator: string): number {
  // Object.hasOwn: the orchestrator's name is data.
  return Object.hasOwn(turns, orchestrator) ? turns[orchestrator] : 0;
}

/** The tokens that a window has besides what always stands in it; half of them at least. */
function roomIn(
  maxTokens: number,
  { summary }: ConversationHead,
  log: readonly Message[],
  tokens: MessageTokens,
): number {
  const lead = [...log.filter(isPinned), ...(summary ? [summary] : [])];
  return Math.max(maxTokens - tokens.ofAll(lead), maxTokens / 2);
}
