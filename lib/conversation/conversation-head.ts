import { type TokenUsage } from '../common/token-usage.js';
import { CONVERSATION_NAMESPACE } from '../ledger/module-namespace.js';
import { type StateBatch, type StateDocument, type StateName } from '../ledger/state.store.js';
import { type CompactionPhase } from './compaction.errors.js';
import { type Message } from '../ledger/message.js';
import { type ConversationView } from './window.js';

/** The document of a session's present head. */
export const HEAD: StateName = { namespace: CONVERSATION_NAMESPACE, scope: '', key: 'head' };

/** Of an earlier head. Each is written once only: no other one has its id and its number. */
export function earlierName({ id, number }: Pick<ConversationHead, 'id' | 'number'>): StateName {
  return { ...HEAD, key: `head:${id}:${number}` };
}

/** What compaction knows of a session: how far its log is summarized, or left out. The log itself stays as it is. */
export interface ConversationHead {
  /** Minted with a session's first head: a session that is deleted and made again has other heads. */
  readonly id: string;
  /** The epoch of the log that it is of; '' until that is reset for the first time. */
  readonly log: string;
  /** Grows with every change of what follows. */
  readonly number: number;
  /** The head before, which restoring leads back to; `null` at the beginning. */
  readonly previous: number | null;
  /** What the next compaction goes on from: messages up to this position are behind the summary, or left out; 0 when none are. */
  readonly through: number;
  /** The next one is made of it. */
  readonly summary: Message | null;
  /** The one that windows begin with: the latest that is not in a store of the application's own. */
  readonly shown: Message | null;
  /** Messages up to this position are in no window: they are behind the one that is shown, or left out. */
  readonly hiddenThrough: number;
  /** The head before, until it is stored under its own name. */
  readonly former: ConversationHead | null;
  /** What the summaries of each orchestrator took in all, also those that came to nothing. */
  readonly spent: Readonly<Record<string, TokenUsage>>;
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
  id: '',
  log: '',
  number: 0,
  previous: null,
  through: 0,
  summary: null,
  shown: null,
  hiddenThrough: 0,
  former: null,
  spent: {},
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
  const { through, shown, hiddenThrough, takenBack } = head;
  if (from >= (takenBack ?? through + 1)) return head;
  // The heads before may be good still: compaction looks for one when it is next at it.
  const changed = { ...head, through: 0, summary: null, takenBack: from };
  if (from > hiddenThrough) return changed;
  const isGood = from > throughOf(shown);
  return { ...changed, shown: isGood ? shown : null, hiddenThrough: isGood ? throughOf(shown) : 0 };
}

function throughOf(summary: Message | null): number {
  return summary?.replaces?.through ?? 0;
}

/** A log as it is read through its head. @param log its end, led by its first message when that is a system message */
export function viewThrough(head: ConversationHead | null, log: readonly Message[]): ConversationView<Message> {
  const pinned = log.length > 0 && isPinned(log[0]) ? log.slice(0, 1) : [];
  const summary = head?.shown ?? null;
  return { pinned, summary, messages: after(log.slice(pinned.length), head?.hiddenThrough ?? 0) };
}

function after(messages: readonly Message[], position: number): readonly Message[] {
  const first = messages.findIndex((message) => message.position > position);
  return first === -1 ? [] : messages.slice(first);
}

export function isPinned({ role, position }: Message): boolean {
  return role === 'system' && position === 1;
}
