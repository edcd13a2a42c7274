import { SessionsConfigurationError } from '../common/sessions.error.js';
import { CompactionNotConfiguredError } from './compaction.errors.js';
import { type CompactionRequest } from './compaction-request.js';
import { type RunParts } from './compaction-run.js';
import { type ConversationHead, isPinned } from './conversation-head.js';
import { countWindow, speakersAt } from './conversation-counts.js';
import { type ConversationHeads } from './conversation-heads.js';
import { type KeepRule, readKept } from './kept-messages.js';
import { type Message } from '../ledger/message.js';
import { type MessageTokens } from './message-tokens.js';
import { type SpeakersCheckpoints } from './uncompacted.js';
import { undoneBy, withoutUndone } from './undone-messages.js';

/** Of what windows are cut from: the leading system message, the summary, and the messages since that were not taken back. */
export interface CompactionCounts {
  readonly messagesBefore: number;
  readonly messagesAfter: number;
  /** Of `tokens`, where all of it was read: no more is read than what stays, and a page. */
  readonly tokensBefore?: number;
  /** Of `tokens`. */
  readonly tokensAfter?: number;
}

/** What would become of a conversation. */
export interface CompactionPlan {
  /** The head that it goes on from. */
  readonly base: ConversationHead;
  /** Messages up to this position are in no window then; `null`: there is nothing to do. */
  readonly through: number | null;
  /** What stays. */
  readonly kept: readonly Message[];
  readonly counts: CompactionCounts;
  /** The latest ones of those that speak in it. */
  readonly checkpoints: SpeakersCheckpoints;
}

export interface PlanParts extends Pick<RunParts, 'adapter' | 'tokens'> {
  /** Who may have spoken. What was taken back of others is known where they speak in what was read. */
  readonly orchestrators: () => readonly string[];
}

/** How many of the last messages stay in any case. */
export function preservedBy({ strategy, preserveRecent }: CompactionRequest): number {
  const isRecent = strategy === undefined || strategy === 'recent';
  // Where one message is to stay, one does, though its call stays with it.
  return isRecent ? Math.max(1, preserveRecent ?? 0) : (preserveRecent ?? 6);
}

/** That nothing counts tokens is no failure, but for whoever asks for it. */
function toNotConfigured(error: unknown): never {
  throw error instanceof SessionsConfigurationError
    ? new CompactionNotConfiguredError(error.message, { cause: error })
    : error;
}

/** Changes nothing. Reads what stays, from the end on. */
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
  const checkpoints = await speakersAt(ends, adapter.checkpoints, orchestrators(), sessionId);
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

function ruleOf(request: CompactionRequest, lead: readonly Message[], tokens: MessageTokens): KeepRule {
  const { strategy, maxMessages = 20, maxTokens = 8000 } = request;
  const preserve = preservedBy(request);
  if (strategy === 'tokens') {
    return { budget: maxTokens - tokens.ofAll(lead), cost: (message) => tokens.of(message), preserve };
  }
  // The summary stands for all but those that are preserved.
  return { budget: strategy === 'summary' ? 0 : maxMessages, cost: () => 1, preserve };
}
