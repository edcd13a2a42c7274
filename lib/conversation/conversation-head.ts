import { type TokenCounts } from '../common/token-counts.js';
import { CONVERSATION_NAMESPACE } from '../ledger/namespaces.js';
import { type StateBatch, type StateDocument, type StateName } from '../ledger/state.store.js';
import { type CompactionPhase } from './compaction.errors.js';
import { type ConversationMessage } from '../ledger/message.js';
import { type ConversationView } from './window.js';

/** The document of a session's current head. */
export const HEAD: StateName = { namespace: CONVERSATION_NAMESPACE, scope: '', key: 'head' };

/** The document name of an earlier head. Each is written only once: id and number identify one head. */
export function earlierName({ id, number }: Pick<ConversationHead, 'id' | 'number'>): StateName {
  return { ...HEAD, key: `head:${id}:${number}` };
}

/** The compaction state of a session: how much of its log is summarized or hidden. The log itself does not change. */
export interface ConversationHead {
  /** Generated with a session's first head. A session that is deleted and created again gets a new id. */
  readonly id: string;
  /** The epoch of the log that this head belongs to; '' until the first reset of the log. */
  readonly log: string;
  /** Increases with every change of the fields below. */
  readonly number: number;
  /** The number of the previous head, to which `restore` returns; `null` for the first head. */
  readonly previous: number | null;
  /** The next compaction starts after this position: earlier messages are summarized or hidden. 0: none. */
  readonly through: number;
  /** The input of the next summary. */
  readonly summary: ConversationMessage | null;
  /** The summary at the start of windows: the latest one that is not stored in the application's own store. */
  readonly shown: ConversationMessage | null;
  /** Windows start after this position: earlier messages are hidden or covered by the shown summary. */
  readonly hiddenThrough: number;
  /** The previous head, until it is stored under its own name. */
  readonly former: ConversationHead | null;
  /** The total token usage of summaries by orchestrator, including failed ones. */
  readonly spent: Readonly<Record<string, TokenCounts>>;
  /** Thresholds count tokens after this position. */
  readonly since: number;
  /** The number of turns by orchestrator that thresholds no longer count. */
  readonly turns: Readonly<Record<string, number>>;
  /** The process that compacts now, and the end of its lease by the store's clock. */
  readonly lease: { readonly holder: string; readonly until: string } | null;
  /** The last failure, or `null` after a success. */
  readonly failure: CompactionFailure | null;
  /** Messages from this position on were undone, and the summary covered some of them. */
  readonly takenBack: number | null;
}

export interface CompactionFailure {
  readonly phase: CompactionPhase;
  readonly message: string;
  /** The number of consecutive failures. */
  readonly count: number;
  /** The time of the next attempt: ISO-8601, by the store's clock. */
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
 * An entry appended to a head: messages from this position on were undone. A summary that covers some of them is
 * not used any more, and a compaction in progress is discarded.
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
  // Earlier heads may still be valid: the next compaction looks for one.
  const changed = { ...head, through: 0, summary: null, takenBack: from };
  if (from > hiddenThrough) return changed;
  const isGood = from > throughOf(shown);
  return { ...changed, shown: isGood ? shown : null, hiddenThrough: isGood ? throughOf(shown) : 0 };
}

function throughOf(summary: ConversationMessage | null): number {
  return summary?.replaces?.through ?? 0;
}

/**
 * Returns the view of a log through its head.
 * @param log the end of the log, preceded by its first message if that is a system message
 */
export function viewThrough(
  head: ConversationHead | null,
  log: readonly ConversationMessage[],
): ConversationView<ConversationMessage> {
  const pinned = log.length > 0 && isPinned(log[0]) ? log.slice(0, 1) : [];
  const summary = head?.shown ?? null;
  return { pinned, summary, messages: after(log.slice(pinned.length), head?.hiddenThrough ?? 0) };
}

function after(messages: readonly ConversationMessage[], position: number): readonly ConversationMessage[] {
  const first = messages.findIndex((message) => message.position > position);
  return first === -1 ? [] : messages.slice(first);
}

export function isPinned({ role, position }: ConversationMessage): boolean {
  return role === 'system' && position === 1;
}
