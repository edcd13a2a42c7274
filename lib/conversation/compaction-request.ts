/**
 * How to shorten a conversation: keep a number of `recent` messages, keep what fits a number of `tokens`, or write a
 * `summary` and keep the last messages.
 */
export const COMPACTION_STRATEGIES = ['recent', 'tokens', 'summary'] as const;
/** One of {@link COMPACTION_STRATEGIES}. */
export type CompactionStrategy = (typeof COMPACTION_STRATEGIES)[number];

/** A request to shorten a conversation. The control plane validates it, see `CompactStateRequest`. */
export interface CompactionRequest {
  readonly strategy?: CompactionStrategy;
  readonly maxMessages?: number;
  readonly maxTokens?: number;
  readonly preserveRecent?: number;
  readonly summaryMaxTokens?: number;
  readonly dryRun?: boolean;
}
