import { isPlainObject } from '../common/json.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { type TokenUsage, type TokenUsageInput } from '../common/token-usage.js';
import { type HistoryWindow, toHistoryWindow } from './history-window.js';
import { type Message, type MessageSpan } from '../ledger/message.js';

const MAX_THRESHOLD = 1_000_000_000;
const MAX_KEEP = 1000;

/** Whose conversation is summarized, and for whom. */
export interface CompactionInfo {
  readonly sessionId: string;
  /** Whose policy it is; `null`: nobody's, see the option `state.summarize`. */
  readonly orchestrator: string | null;
  /** How long the summary may be, where the control plane was asked for that. */
  readonly summaryMaxTokens?: number;
  /** Aborted when the application stops, another process has taken the session over, or it took longer than a turn may. */
  readonly signal: AbortSignal;
}

/**
 * Writes the summary that stands for the messages from then on.
 * @param messages the summary before, when there is one, then the messages that are replaced: at most 200
 * @returns a text, with the tokens that it took if you like; an empty one is a failure
 */
export type Summarizer = (
  messages: readonly Message[],
  info: CompactionInfo,
) => Summary | string | Promise<Summary | string>;

/** What a summarizer returns when it counts its tokens; a text alone is fine too. */
export interface Summary {
  readonly text: string;
  readonly usage?: TokenUsageInput;
}

/** What was compacted, for a store of the application's own. */
export interface Compaction {
  /** Grows with each of the session. After a crash one may come again, with another summary. */
  readonly number: number;
  readonly summary: string;
  /** The positions of the log that it stands for, those of the summary before included. */
  readonly replaces: MessageSpan;
  readonly usage?: TokenUsage;
}

/** When a conversation is compacted, and how (BOT-41 to BOT-43). */
export interface CompactionOptions {
  /**
   * Compacts once more turns than this are not behind a summary, or they do not fit the agents' window any more. Default: no
   * such threshold; without any it is done by command only.
   */
  readonly afterTurns?: number;
  /** Compacts once the messages that are not behind a summary take more tokens than this, or are more than are loaded. Default: no such threshold. */
  readonly afterTokens?: number;
  /**
   * The last messages, which stay as they are; some more where a tool call would be cut from its results, and no more than half
   * of the agents' window. Default 6.
   */
  readonly keep?: number;
  /** Writes the summary. Left out: the method with `@Summarize()` does. */
  readonly summarize?: Summarizer;
  /**
   * Applies it to a store of the application's own. Windows are then read from the whole log as before. What it throws is a
   * failure, and it is tried again. Default: nothing else is done.
   */
  readonly onCompact?: (compaction: Compaction, info: CompactionInfo) => unknown;
}

/** Checked, with every default filled in. */
export interface CompactionPolicy extends CompactionOptions {
  readonly keep: number;
  readonly summarize: Summarizer;
  /** What the orchestrator's parts are given: between it and the summary there must be nothing. */
  readonly window: Required<HistoryWindow>;
}

/** Of a summary that the control plane was asked for: whatever the windows are. @param keep the last messages, which stay */
export function requestedPolicy(summarize: Summarizer, keep: number): CompactionPolicy {
  return { summarize, keep, window: toHistoryWindow('', ({ messages }) => messages) };
}

/** @throws SessionsConfigurationError naming the orchestrator and the field that is wrong, above all a missing summarizer (BOT-42) */
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
  check(stranger === undefined, `.${stranger}`, 'is not a known option.');
  check(isThreshold(afterTurns), '.afterTurns', 'must be an integer of 1 or more.');
  check(isThreshold(afterTokens), '.afterTokens', 'must be an integer of 1 or more.');
  check(Number.isInteger(keep) && keep >= 0 && keep <= MAX_KEEP, '.keep', `must be an integer from 0 to ${MAX_KEEP}.`);
  check(
    typeof summarize === 'function',
    '.summarize',
    'must be a function that returns the summary, or a method with @Summarize(): without one there is nothing to put in the place of the messages.',
  );
  check(onCompact === undefined || typeof onCompact === 'function', '.onCompact', 'must be a function.');
  return Object.freeze({ ...options, keep, summarize: summarize!, window });
}

function isThreshold(value: number | undefined): boolean {
  return value === undefined || (Number.isInteger(value) && value >= 1 && value <= MAX_THRESHOLD);
}
