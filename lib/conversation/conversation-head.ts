import { type TokenUsage } from '../orchestration/token-usage.js';
import { type StateBatch, type StateDocument, type StateName } from '../state/state.store.js';
import { type CompactionPhase } from './compaction.errors.js';
import { type CompactionPolicy } from './compaction-policy.js';
import { type Message, type MessageDraft } from './message.js';
import { type MessageTokens } from './message-tokens.js';
import { type ConversationView } from './window.js';

/** Where heads are kept, and nothing else may be. */
export const CONVERSATION_NAMESPACE = 'agent-sessions:conversation';

/** The document of a session's present head. */
export const HEAD: StateName = headName();

/** Of an earlier head, by its number. */
export function headName(number?: number): StateName {
  return { namespace: CONVERSATION_NAMESPACE, scope: '', key: number === undefined ? 'head' : `head:${number}` };
}

/** What compaction knows of a session: how far its log is summarized. The log itself stays as it is. */
export interface ConversationHead {
  /** Grows with every change of what follows. */
  readonly number: number;
  /** The head before, which restoring leads back to; `null` at the beginning. */
  readonly previous: number | null;
  /** Messages up to this position are behind the summary; 0 when none are. */
  readonly through: number;
  readonly summary: Message | null;
  /** False when the application keeps the summary in a store of its own: the log is then read as if there were none. */
  readonly applied: boolean;
  /** What the summary took. */
  readonly usage: TokenUsage | null;
  /** Where tokens are counted from: those after this position. */
  readonly since: number;
  /** Where turns are counted from: by orchestrator, how many of its turns are not counted any more. */
  readonly turns: Readonly<Record<string, number>>;
  /** Who compacts now, until when by the store's clock. */
  readonly lease: { readonly holder: string; readonly until: string } | null;
  /** Why the last try came to nothing; gone once one succeeds. */
  readonly failure: CompactionFailure | null;
  /** Messages from this position on were taken back, and some of them were behind the summary. */
  readonly takenBack: number | null;
}

export interface CompactionFailure {
  readonly phase: CompactionPhase;
  readonly message: string;
  /** How often in a row. */
  readonly count: number;
  /** ISO-8601, by the store's clock: not tried again before. */
  readonly retryAt: string;
}

export const FIRST_HEAD: ConversationHead = {
  number: 0,
  previous: null,
  through: 0,
  summary: null,
  applied: true,
  usage: null,
  since: 0,
  turns: {},
  lease: null,
  failure: null,
  takenBack: null,
};

/**
 * What may be appended to a head: messages from this position on were taken back. A summary that stands for some of them is not
 * read any more. Whoever compacts meanwhile comes too late.
 */
export interface TakenBack {
  readonly from: number;
}

export function readHead({ value, batches }: Pick<StateDocument, 'value' | 'batches'>): ConversationHead {
  const head = { ...FIRST_HEAD, ...(value as unknown as Partial<ConversationHead> | null) };
  return batches.flatMap(entriesOf).reduce(takeBack, head);
}

function entriesOf({ entries }: StateBatch): readonly TakenBack[] {
  return entries as unknown as readonly TakenBack[];
}

function takeBack(head: ConversationHead, { from }: TakenBack): ConversationHead {
  const takenBack = Math.min(from, head.takenBack ?? from);
  // The heads before may be good still: compaction looks for one when it is next at it.
  return from > head.through ? head : { ...head, through: 0, summary: null, usage: null, takenBack };
}

/** A log as it is read through its head. @param log its end, led by its first message when that is a system message */
export function viewThrough(head: ConversationHead | null, log: readonly Message[]): ConversationView<Message> {
  const pinned = log.length > 0 && isPinned(log[0]) ? log.slice(0, 1) : [];
  const summary = head?.applied ? head.summary : null;
  const behind = summary ? (summary.replaces?.through ?? 0) : 0;
  return { pinned, summary, messages: after(log.slice(pinned.length), behind) };
}

function after(messages: readonly Message[], position: number): readonly Message[] {
  const first = messages.findIndex((message) => message.position > position);
  return first === -1 ? [] : messages.slice(first);
}

export function isPinned({ role, position }: Message): boolean {
  return role === 'system' && position === 1;
}

/** What a turn that has settled saw of its conversation. */
export interface SeenConversation {
  /** The index of its checkpoint. */
  readonly turnIndex: number;
  /** The end of the log as the turn began. */
  readonly history: readonly Message[];
  /** What the turn added. */
  readonly added: readonly MessageDraft[];
}

/** Whether the conversation has grown beyond what the policy allows (BOT-41). Reads nothing. */
export function isDue(
  { afterTurns, afterTokens, keep }: CompactionPolicy,
  orchestrator: string,
  head: ConversationHead,
  seen: SeenConversation,
  tokens: MessageTokens,
): boolean {
  const { turnIndex, history, added } = seen;
  if (lastPosition(seen) - head.through <= keep) return false;
  if (afterTurns !== undefined && turnIndex + 1 - countedTurns(head, orchestrator) > afterTurns) return true;
  if (afterTokens === undefined) return false;
  const counted = history.filter((message) => message.position > head.since && !isPinned(message));
  return tokens.ofAll([...counted, ...added]) > afterTokens;
}

/** Where the log ended once the turn had settled, at least. */
export function lastPosition({ history, added }: SeenConversation): number {
  return (history.at(-1)?.position ?? 0) + added.length;
}

function countedTurns({ turns }: ConversationHead, orchestrator: string): number {
  // Object.hasOwn: the orchestrator's name is data.
  return Object.hasOwn(turns, orchestrator) ? turns[orchestrator] : 0;
}
