import { IsBoolean, Allow } from 'class-validator';
import { Must, MustBeInteger, Optional } from '../common/check-input.js';
import { ID_RULE, isId, isName } from '../common/ids.js';
import { COMPACTION_STRATEGIES, type CompactionStrategy } from '../conversation/compaction-request.js';

const MAX_MESSAGES = 10_000;
const MAX_TOKENS = 100_000_000;
const MAX_STORES = 100;

/** The common fields of all control plane operations (STA-20). */
export class StateRequest {
  /** The session. Default: none, for requests about all sessions. */
  @Optional()
  @Must(isId, ID_RULE)
  sessionId?: string;

  /** Names of modules. Default: all enabled modules. */
  @Optional()
  @Must(isNames, `must be a list of 1 to ${MAX_STORES} names of state modules.`)
  stores?: string[];

  /** Custom JSON that is returned in the result and in the audit event. Default: none. */
  @Allow()
  metadata?: Record<string, unknown>;

  /** Whether to report what would be done, without changes. Default false. */
  @Optional()
  @IsBoolean()
  dryRun?: boolean;
}

/** Selects the state to describe. Without a session, it lists the modules. */
export class DescribeStateRequest extends StateRequest {
  /** Whether to include a redacted page of the data of each module. Requires a session. Default false. */
  @Optional()
  @IsBoolean()
  includeData?: boolean;

  /** Maximum number of items per module. Default 50. Requires `includeData`. A page ends early at 1 MiB. */
  @Optional()
  @MustBeInteger(1, 200)
  limit?: number;

  /**
   * The `next` value of a module's previous page. `stores` must name only that module. Default: starts with the first
   * item.
   */
  @Optional()
  @Must(
    (value) => typeof value === 'string' && value.length > 0 && value.length <= 2048,
    'must be the `next` value of an earlier page.',
  )
  after?: string;
}

/** Selects the state to clear: that of one session, or with `all: true` of every session. */
export class ResetStateRequest extends StateRequest {
  /**
   * Whether to clear the modules of every session; omit `sessionId` then. With `dryRun`, the result lists the modules,
   * but not whether they have data to clear. Default false.
   */
  @Optional()
  @IsBoolean()
  all?: boolean;
}

/** How to shorten the conversation of a session (STA-24). The strategy decides which numbers apply. */
export class CompactStateRequest extends StateRequest {
  /** The strategy that chooses the messages to keep. Default `recent`. */
  @Optional()
  @Must(
    (value) => (COMPACTION_STRATEGIES as readonly unknown[]).includes(value),
    `must be one of ${COMPACTION_STRATEGIES.join(', ')}.`,
  )
  strategy?: CompactionStrategy;

  /** `recent`: the number of messages to keep. Default 20. */
  @Optional()
  @MustBeInteger(1, MAX_MESSAGES)
  maxMessages?: number;

  /** `tokens`: the maximum number of tokens of the kept messages. Default 8,000. */
  @Optional()
  @MustBeInteger(1, MAX_TOKENS)
  maxTokens?: number;

  /**
   * The number of last messages that are always kept, even beyond the budget of `tokens`. Default 6; with `recent` 1.
   */
  @Optional()
  @MustBeInteger(0, 1000)
  preserveRecent?: number;

  /** `summary`: the limit that is passed to the summarizer. Default: none. */
  @Optional()
  @MustBeInteger(1, MAX_TOKENS)
  summaryMaxTokens?: number;
}

function isNames(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.length <= MAX_STORES && value.every(isName);
}
