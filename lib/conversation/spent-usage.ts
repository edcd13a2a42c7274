import { type Checkpoint, type StateSnapshot } from '../ledger/checkpoint.js';
import { type JsonValue } from '../common/json.js';
import { addUsage, subtractUsage, type TokenCounts } from '../common/token-counts.js';
import { CONVERSATION_NAMESPACE } from '../ledger/namespaces.js';
import { type ConversationHead } from './conversation-head.js';

/** The usage of summaries that an orchestrator's last checkpoint has reported. */
interface Reported {
  /** The id of the head that was reported. With another head, the report does not count. */
  readonly head: string;
  readonly usage: TokenCounts;
}

const NAME = { namespace: CONVERSATION_NAMESPACE, scope: '', key: 'reported' } as const;

export function withSpent(head: ConversationHead, orchestrator: string, usage: TokenCounts): ConversationHead {
  const before = spentOf(head, orchestrator);
  const total = before ? addUsage(before, usage) : usage;
  return { ...head, spent: { ...head.spent, ...Object.fromEntries([[orchestrator, total]]) } };
}

/** Returns the usage of summaries since the checkpoint; `null` if none exists. */
export function unreportedUsage(
  head: ConversationHead | null,
  orchestrator: string,
  checkpoint: Checkpoint | null,
): TokenCounts | null {
  const spent = head && spentOf(head, orchestrator);
  if (!spent) return null;
  const mark = reportedIn(checkpoint)?.value as unknown as Reported | undefined;
  if (mark?.head !== head.id) return spent;
  const { usage } = mark;
  if (spent.totalTokens <= usage.totalTokens) return null;
  return subtractUsage(spent, usage);
}

/** Returns the snapshot for the checkpoint of a turn that reports all usage. */
export function reportedUsage(head: ConversationHead | null, orchestrator: string): StateSnapshot | null {
  const usage = head && spentOf(head, orchestrator);
  if (!usage) return null;
  const reported: Reported = { head: head.id, usage };
  return { name: NAME, value: reported as unknown as JsonValue };
}

/**
 * Returns the documents of an older checkpoint that is restored. Usage that later checkpoints reported stays reported.
 */
export function stillReported(
  documents: readonly StateSnapshot[] | undefined,
  latest: Checkpoint,
): readonly StateSnapshot[] | undefined {
  const mark = reportedIn(latest);
  if (!mark) return documents;
  return [...(documents ?? []).filter(({ name }) => !isMark(name)), mark];
}

function reportedIn(checkpoint: Checkpoint | null): StateSnapshot | undefined {
  return checkpoint?.documents?.find(({ name }) => isMark(name));
}

function isMark({ namespace, key }: StateSnapshot['name']): boolean {
  return namespace === NAME.namespace && key === NAME.key;
}

function spentOf({ spent }: ConversationHead, orchestrator: string): TokenCounts | undefined {
  // Object.hasOwn: the orchestrator's name is user data.
  return Object.hasOwn(spent, orchestrator) ? spent[orchestrator] : undefined;
}
