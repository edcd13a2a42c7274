import { isPlainObject } from '../common/json.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { type TokenCounts, type TokenCountsInput } from '../common/token-counts.js';
import { type HistoryWindow, toHistoryWindow } from './history-window.js';
import { type ConversationMessage, type MessageSpan } from '../ledger/message.js';

const MAX_THRESHOLD = 1_000_000_000;
const MAX_KEEP = 1000;

/** The context of a summary. */
export interface CompactionInfo {
  readonly sessionId: string;
  /** The orchestrator of the policy; `null`: none, see the option `state.summarize`. */
  readonly orchestrator: string | null;
  /** The maximum length of the summary, if the request to the control plane set one. */
  readonly summaryMaxTokens?: number;
  /** Aborted when the application stops, another process takes over the session, or the call exceeds the time limit of a turn. */
  readonly signal: AbortSignal;
}

/**
 * Writes the summary that replaces the messages.
 * @param messages the previous summary, if any, then the messages to replace: at most 200
 * @returns a string, optionally with the tokens used; an empty string is a failure
 */
export type Summarizer = (
  messages: readonly ConversationMessage[],
  info: CompactionInfo,
) => Summary | string | Promise<Summary | string>;

/** The result of a summarizer that reports its tokens. A string is also allowed. */
export interface Summary {
  readonly text: string;
  readonly usage?: TokenCountsInput;
}

/** A compaction, for a custom store of the application. */
export interface Compaction {
  /** Increases with each compaction of the session. After a crash a number may be repeated with another summary. */
  readonly number: number;
  readonly summary: string;
  /** The positions of the log that the summary covers, including the positions of the previous summary. */
  readonly replaces: MessageSpan;
  readonly usage?: TokenCounts;
}

/** When and how a conversation is compacted (BOT-41 to BOT-43). */
export interface CompactionOptions {
  /**
   * Compacts when more turns than this are not covered by a summary, or no longer fit the agents' window. Default: no threshold.
   * Without any threshold, conversations are compacted by command only.
   */
  readonly afterTurns?: number;
  /** Compacts when the messages without a summary have more tokens than this, or more are stored than loaded. Default: no threshold. */
  readonly afterTokens?: number;
  /**
   * Number of last messages to keep, at most half of the agents' window. More are kept if a tool call would be separated from its
   * results. Default 6.
   */
  readonly keep?: number;
  /** Writes the summary. Default: the method with `@Summarize()`. */
  readonly summarize?: Summarizer;
  /**
   * Applies the compaction to a custom store. Windows are then still read from the whole log. An error counts as a failure and is
   * retried. Default: none.
   */
  readonly onCompact?: (compaction: Compaction, info: CompactionInfo) => unknown;
}

/** The validated policy with all defaults. */
export interface CompactionPolicy extends CompactionOptions {
  readonly keep: number;
  readonly summarize: Summarizer;
  /** The windows of the orchestrator. No messages may be missing between a window and the summary. */
  readonly window: Required<HistoryWindow>;
}

/**
 * Returns the policy of a summary requested through the control plane, which does not depend on windows.
 * @param keep the number of last messages to keep
 */
export function requestedPolicy(summarize: Summarizer, keep: number): CompactionPolicy {
  return { summarize, keep, window: toHistoryWindow('', ({ messages }) => messages) };
}

/**
 * @throws SessionsConfigurationError with the orchestrator and the invalid field, for example a missing summarizer
 * (BOT-42)
 */
export function toCompactionPolicy(
  orchestrator: string,
  options: CompactionOptions,
  window: Required<HistoryWindow>,
): CompactionPolicy {
  const check = (ok: boolean, field: string, rule: string): void => {
    if (!ok) throw new SessionsConfigurationError(`Orchestrator ${orchestrator}: compaction${field} ${rule}`);
  };
  check(isPlainObject(options), '', 'must be an object, for example { afterTurns: 20, keep: 6, summarize }.');
  const { afterTurns, afterTokens, keep = 6, summarize, onCompact, ...unknown } = options;
  const [stranger] = Object.keys(unknown);
  check(
    stranger === undefined,
    `.${stranger}`,
    'is not a known option. Allowed: afterTurns, afterTokens, keep, summarize, onCompact.',
  );
  check(isThreshold(afterTurns), '.afterTurns', 'must be an integer of 1 or more.');
  check(isThreshold(afterTokens), '.afterTokens', 'must be an integer of 1 or more.');
  check(Number.isInteger(keep) && keep >= 0 && keep <= MAX_KEEP, '.keep', `must be an integer from 0 to ${MAX_KEEP}.`);
  check(
    typeof summarize === 'function',
    '.summarize',
    'must be a function that returns the summary. Alternatively, add a method with @Summarize().',
  );
  check(onCompact === undefined || typeof onCompact === 'function', '.onCompact', 'must be a function.');
  return Object.freeze({ ...options, keep, summarize: summarize!, window });
}

function isThreshold(value: number | undefined): boolean {
  return value === undefined || (Number.isInteger(value) && value >= 1 && value <= MAX_THRESHOLD);
}
