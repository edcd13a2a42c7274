/** What stays of a conversation: so many `recent` messages, what fits so many `tokens`, or a `summary` and the last ones. */
export const COMPACTION_STRATEGIES = ['recent', 'tokens', 'summary'] as const;
/** One of {@link COMPACTION_STRATEGIES}. */
export type CompactionStrategy = (typeof COMPACTION_STRATEGIES)[number];

/** What to do to a conversation. The control plane checks it, see `CompactStateRequest`. */
export interface CompactionRequest {
  readonly strategy?: CompactionStrategy;
  readonly maxMessages?: number;
  readonly maxTokens?: number;
  readonly preserveRecent?: number;
  readonly summaryMaxTokens?: number;
  readonly dryRun?: boolean;
}
