import { IsBoolean, Allow } from 'class-validator';
import { Must, MustBeInteger, Optional } from '../common/check-input.js';
import { ID_RULE, isId, isName } from '../common/ids.js';
import { COMPACTION_STRATEGIES, type CompactionStrategy } from '../conversation/compaction-request.js';

const MAX_MESSAGES = 10_000;
const MAX_TOKENS = 100_000_000;
const MAX_STORES = 100;

/** What every operation of the control plane takes (STA-20). */
export class StateRequest {
  /** Whose state. Left out only where a request is of no session. */
  @Optional()
  @Must(isId, ID_RULE)
  sessionId?: string;

  /** Names of modules. Default: all that are enabled. */
  @Optional()
  @Must(isNames, `must be a list of 1 to ${MAX_STORES} names of state modules.`)
  stores?: string[];

  /** Yours: the result has it again, and so has the audit event. JSON. Default: nothing. */
  @Allow()
  metadata?: Record<string, unknown>;

  /** Says what would be done, and does nothing. Default false. */
  @Optional()
  @IsBoolean()
  dryRun?: boolean;
}

/** Which state to describe. Without a session: which modules there are. */
export class DescribeStateRequest extends StateRequest {
  /** A page of what the modules hold, redacted. Only of a session. Default false. */
  @Optional()
  @IsBoolean()
  includeData?: boolean;

  /** Items of a page, of each module; default 50. Only with `includeData`. A page of more than 1 MiB ends earlier. */
  @Optional()
  @MustBeInteger(1, 200)
  limit?: number;

  /** The `next` of a module's page before; names that one module in `stores`. Default: from the beginning. */
  @Optional()
  @Must((value) => typeof value === 'string' && value.length > 0 && value.length <= 2048, 'must be the next of a page.')
  after?: string;
}

/** Which state to clear: a session's, or with `all: true` that of every session. */
export class ResetStateRequest extends StateRequest {
  /** Clears the modules of every session; `sessionId` must then be absent. Default false. */
  @Optional()
  @IsBoolean()
  all?: boolean;
}

/** How to make a session's conversation shorter (STA-24). The strategy says which of the numbers count. */
export class CompactStateRequest extends StateRequest {
  /** What stays of the conversation. Default `recent`. */
  @Optional()
  @Must(
    (value) => (COMPACTION_STRATEGIES as readonly unknown[]).includes(value),
    `must be one of ${COMPACTION_STRATEGIES.join(', ')}.`,
  )
  strategy?: CompactionStrategy;

  /** `recent`: messages that stay. Default 20. */
  @Optional()
  @MustBeInteger(1, MAX_MESSAGES)
  maxMessages?: number;

  /** `tokens`: what the messages that stay may take. Default 8,000. */
  @Optional()
  @MustBeInteger(1, MAX_TOKENS)
  maxTokens?: number;

  /** The last messages, which stay in any case: `tokens` goes over its budget for them. Default 6, `recent` 1. */
  @Optional()
  @MustBeInteger(0, 1000)
  preserveRecent?: number;

  /** `summary`: given to the summarizer as its limit. Default: none. */
  @Optional()
  @MustBeInteger(1, MAX_TOKENS)
  summaryMaxTokens?: number;
}

function isNames(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.length <= MAX_STORES && value.every(isName);
}
