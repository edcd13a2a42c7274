import { type Checkpoint, type StateSnapshot } from '../ledger/checkpoint.js';
import { type JsonValue } from '../common/json.js';
import { addUsage, subtractUsage, type TokenUsage } from '../common/token-usage.js';
import { CONVERSATION_NAMESPACE } from '../ledger/module-namespace.js';
import { type ConversationHead } from './conversation-head.js';

/** What an orchestrator's last checkpoint has seen of what its summaries took. */
interface Reported {
  /** Of the head that it was seen in: another session's, or an earlier one's, says nothing. */
  readonly head: string;
  readonly usage: TokenUsage;
}

const NAME = { namespace: CONVERSATION_NAMESPACE, scope: '', key: 'reported' } as const;

export function withSpent(head: ConversationHead, orchestrator: string, usage: TokenUsage): ConversationHead {
  const before = spentOf(head, orchestrator);
  const total = before ? addUsage(before, usage) : usage;
  return { ...head, spent: { ...head.spent, ...Object.fromEntries([[orchestrator, total]]) } };
}

/** What its summaries took since the checkpoint; `null` for nothing. */
export function unreportedUsage(
  head: ConversationHead | null,
  orchestrator: string,
  checkpoint: Checkpoint | null,
): TokenUsage | null {
  const spent = head && spentOf(head, orchestrator);
  if (!spent) return null;
  const mark = reportedIn(checkpoint)?.value as unknown as Reported | undefined;
  if (mark?.head !== head.id) return spent;
  const { usage } = mark;
  if (spent.totalTokens <= usage.totalTokens) return null;
  return subtractUsage(spent, usage);
}

/** For the checkpoint of a turn that reports all of it. */
export function reportedUsage(head: ConversationHead | null, orchestrator: string): StateSnapshot | null {
  const usage = head && spentOf(head, orchestrator);
  if (!usage) return null;
  const reported: Reported = { head: head.id, usage };
  return { name: NAME, value: reported as unknown as JsonValue };
}

/** The documents of an older checkpoint that stands again: what was reported until the latest one stays so. */
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

function spentOf({ spent }: ConversationHead, orchestrator: string): TokenUsage | undefined {
  // Object.hasOwn: the orchestrator's name is data.
  return Object.hasOwn(spent, orchestrator) ? spent[orchestrator] : undefined;
}
