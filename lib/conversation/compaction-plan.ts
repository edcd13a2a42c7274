import { SessionsConfigurationError } from '../common/sessions.error.js';
import { compactionNotConfigured } from './compaction.errors.js';
import { type CompactionRequest } from './compaction-request.js';
import { type RunParts } from './compaction-run.js';
import { type ConversationHead, isPinned } from './conversation-head.js';
import { countWindow, checkpointsAt } from './conversation-counts.js';
import { type ConversationHeads } from './conversation-heads.js';
import { type KeepRule, readKept } from './kept-messages.js';
import { type ConversationMessage } from '../ledger/message.js';
import { type MessageTokens } from './message-tokens.js';
import { type AuthorCheckpoints } from './uncompacted.js';
import { undoneBy, withoutUndone } from './undone-messages.js';

/**
 * Sizes of the input of windows: the leading system message, the summary and the messages after it, without those that
 * were undone.
 */
export interface CompactionCounts {
  readonly messagesBefore: number;
  readonly messagesAfter: number;
  /**
   * The size in tokens, with strategy `tokens`. Absent if older messages were not read: reading stops soon after the
   * messages to keep.
   */
  readonly tokensBefore?: number;
  /** The size in tokens, with strategy `tokens`. */
  readonly tokensAfter?: number;
}

/** The expected result of a compaction. */
export interface CompactionPlan {
  /** The head to start from. */
  readonly base: ConversationHead;
  /** Windows will start after this position; `null` if there is nothing to do. */
  readonly through: number | null;
  /** The messages to keep. */
  readonly kept: readonly ConversationMessage[];
  readonly counts: CompactionCounts;
  /** The latest checkpoints of the orchestrators that wrote messages. */
  readonly checkpoints: AuthorCheckpoints;
}

export interface PlanParts extends Pick<RunParts, 'adapter' | 'tokens'> {
  /** The orchestrators that may have written messages. Others are found through the messages that were read. */
  readonly orchestrators: () => readonly string[];
}

/** Returns how many of the last messages are always kept. */
export function preservedBy({ strategy, preserveRecent }: CompactionRequest): number {
  const isRecent = strategy === undefined || strategy === 'recent';
  // `recent` keeps at least one message; the tool call that it answers is kept too.
  return isRecent ? Math.max(1, preserveRecent ?? 0) : (preserveRecent ?? 6);
}

/** Converts the error of a missing token counter, because only some requests need one. */
function toNotConfigured(error: unknown): never {
  throw error instanceof SessionsConfigurationError ? compactionNotConfigured(error.message, { cause: error }) : error;
}

/** Plans a compaction without changing anything. Reads the messages to keep, from the end. */
export async function planCompaction(
  { adapter, tokens, orchestrators }: PlanParts,
  heads: ConversationHeads,
  sessionId: string,
  head: ConversationHead,
  request: CompactionRequest,
): Promise<CompactionPlan> {
  const { conversations } = adapter;
  const bySummary = request.strategy === 'summary';
  const byTokens = request.strategy === 'tokens';
  if (byTokens) await tokens.load('Compaction by tokens').catch(toNotConfigured);
  const base = head.takenBack === null ? head : await heads.earlier(sessionId, head);
  const ends = await conversations.window(sessionId, 1);
  const checkpoints = await checkpointsAt(ends, adapter.checkpoints, orchestrators(), sessionId);
  const undone = () => undoneBy(checkpoints.values(), head.log);
  const pinned = withoutUndone(ends.filter(isPinned), undone());
  const lead = base.shown ? [...pinned, base.shown] : pinned;

  const last = ends.at(-1)?.position ?? 0;
  const between = { after: bySummary ? base.through : base.hiddenThrough, before: last + 1 };
  const rule = ruleOf(request, lead, tokens);
  const { messages, cut, all } = await readKept(adapter, sessionId, head.log, between, rule, checkpoints);

  const kept = messages.slice(cut);
  const messagesBefore = countWindow(head, ends, undone());
  const messagesAfter = pinned.length + (bySummary || base.shown ? 1 : 0) + kept.length;
  return {
    base,
    through: cut === 0 ? null : messages[cut - 1].position,
    kept,
    checkpoints,
    counts: {
      messagesBefore,
      messagesAfter: cut === 0 ? messagesBefore : messagesAfter,
      ...(byTokens && all && base === head ? { tokensBefore: tokens.ofAll([...lead, ...messages]) } : {}),
      ...(byTokens ? { tokensAfter: tokens.ofAll([...lead, ...kept]) } : {}),
    },
  };
}

function ruleOf(request: CompactionRequest, lead: readonly ConversationMessage[], tokens: MessageTokens): KeepRule {
  const { strategy, maxMessages = 20, maxTokens = 8000 } = request;
  const preserve = preservedBy(request);
  if (strategy === 'tokens') {
    return { budget: maxTokens - tokens.ofAll(lead), cost: (message) => tokens.of(message), preserve };
  }
  // The summary replaces all messages except the preserved ones.
  return { budget: strategy === 'summary' ? 0 : maxMessages, cost: () => 1, preserve };
}
