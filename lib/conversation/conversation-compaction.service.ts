import { type TokenCounts } from '../common/token-counts.js';
import { compactionNotConfigured } from './compaction.errors.js';
import { type CompactionRequest } from './compaction-request.js';
import {
  type CompactionCounts,
  type CompactionPlan,
  planCompaction,
  type PlanParts,
  preservedBy,
} from './compaction-plan.js';
import { requestedPolicy, type Summarizer } from './compaction-policy.js';
import { uncountedTurnsOf } from './compaction-thresholds.js';
import { type ConversationCompactor } from './conversation-compactor.service.js';
import { type ConversationCounts, countConversation } from './conversation-counts.js';
import { type ConversationHead } from './conversation-head.js';
import { ConversationHeads } from './conversation-heads.js';

/** The summarizer for compactions on request. */
export interface RequestedSummarizer {
  /** The orchestrator whose next turn reports the usage of the summary; `null`: none. */
  readonly orchestrator: string | null;
  readonly summarize: Summarizer;
}

export interface CompactionParts extends PlanParts {
  readonly compactor: ConversationCompactor;
  /** Returns the summarizer to use, or `null` if it is missing or ambiguous. */
  readonly summarizer: () => RequestedSummarizer | null;
}

/** The result of a compaction; in a dry run, the expected result. */
export interface CompactionOutcome extends CompactionCounts {
  /** True only if the conversation was shortened. */
  readonly compacted: boolean;
  /** Windows start after this position; 0: no message is hidden. */
  readonly through: number;
  /** The summary and its token usage. */
  readonly summary?: string;
  readonly usage?: TokenCounts;
}

/**
 * Shortens a conversation on request (STA-24). No message is deleted: `recent` and `tokens` let windows start later,
 * and `summary` replaces the hidden messages by a summary. {@link ConversationCompactor.restore} undoes it.
 */
export class ConversationCompaction {
  private readonly heads: ConversationHeads;

  constructor(private readonly parts: CompactionParts) {
    this.heads = new ConversationHeads(parts.adapter.state);
  }

  /**
   * @param request validated, see CompactStateRequest
   * @throws CompactionError, ShuttingDownError,
   * StoreUnavailableError
   */
  async compactBy(sessionId: string, request: CompactionRequest): Promise<CompactionOutcome> {
    const summarizer = request.strategy === 'summary' ? this.summarizer() : null;
    const head = await this.heads.peek(sessionId);
    const plan = await this.plan(sessionId, head, request);
    if (request.dryRun || plan.through === null) return outcomeOf(head, plan);
    return summarizer ? this.summarize(sessionId, plan, request, summarizer) : this.trim(sessionId, request);
  }

  /** Returns the counts without a change. The cost does not depend on the length of the conversation. */
  counts(sessionId: string): Promise<ConversationCounts> {
    const { adapter, orchestrators } = this.parts;
    return countConversation(adapter, this.heads, orchestrators(), sessionId);
  }

  private async trim(sessionId: string, request: CompactionRequest): Promise<CompactionOutcome> {
    const stored = await this.heads.read(sessionId);
    return this.parts.compactor.whileHeld(sessionId, stored, async (held) => {
      // Plan again: from now on, the holder of the head is notified if messages are undone.
      const plan = await this.plan(sessionId, held.head, request);
      const { through } = plan;
      if (through === null) return outcomeOf(held.head, plan);
      held.confirm();
      await held.replace((head) => trimmed(head, plan, through));
      // If this fails, the next holder archives it.
      await held.archive().catch(() => undefined);
      return { compacted: true, through, ...plan.counts };
    });
  }

  private async summarize(
    sessionId: string,
    { counts }: CompactionPlan,
    request: CompactionRequest,
    { orchestrator, summarize }: RequestedSummarizer,
  ): Promise<CompactionOutcome> {
    const policy = requestedPolicy(summarize, preservedBy(request));
    const { summaryMaxTokens } = request;
    const limit = summaryMaxTokens === undefined ? {} : { summaryMaxTokens };
    const result = await this.parts.compactor.compact({ sessionId, orchestrator, policy, request: limit });
    const { summary, replaces, usage } = result;
    // Another process was faster.
    if (summary === null || replaces === null) return this.compactBy(sessionId, { ...request, dryRun: true });
    return { compacted: true, through: replaces.through, ...counts, summary, ...(usage ? { usage } : {}) };
  }

  private plan(sessionId: string, head: ConversationHead, request: CompactionRequest): Promise<CompactionPlan> {
    return planCompaction(this.parts, this.heads, sessionId, head, request);
  }

  private summarizer(): RequestedSummarizer {
    const summarizer = this.parts.summarizer();
    if (!summarizer) throw compactionNotConfigured();
    return summarizer;
  }
}

function outcomeOf({ hiddenThrough }: ConversationHead, { through, counts }: CompactionPlan): CompactionOutcome {
  return { compacted: false, through: through ?? hiddenThrough, ...counts };
}

/** Returns the head after the plan. Thresholds count only the kept messages. */
function trimmed(
  head: ConversationHead,
  { base, kept, checkpoints }: CompactionPlan,
  through: number,
): ConversationHead {
  const authors = new Map([...checkpoints].filter(([, checkpoint]) => checkpoint !== null));
  const turns = Object.entries(uncountedTurnsOf({}, null, authors, kept)).map(([name, count]) => {
    const before = Object.hasOwn(head.turns, name) ? head.turns[name] : 0;
    return [name, Math.max(before, count)] as const;
  });
  return {
    ...head,
    through: Math.max(base.through, through),
    summary: base.summary,
    shown: base.shown,
    hiddenThrough: through,
    takenBack: null,
    since: Math.max(head.since, through),
    turns: { ...head.turns, ...Object.fromEntries(turns) },
  };
}
