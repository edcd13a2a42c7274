import { type JsonObject, type JsonValue } from '../common/json.js';
import { type TokenCounts } from '../common/token-counts.js';
import { type SettledTurnStatus } from '../ledger/turn.js';
import { type Evaluation } from './evaluation.js';

/**
 * The report of a turn, stored with it (BOT-09). It describes the last attempt if the turn failed or was cancelled.
 */
export interface TurnReport {
  readonly status: SettledTurnStatus;
  readonly attempt: number;
  /** The duration of the last attempt. */
  readonly durationMs: number;
  /**
   * Why the turn ended: `dispatch` (its only dispatch was done), `end` (the route returned END_TURN), `outcome` (an intent
   * set a status), `satisfied` (by `evaluate`), or `max-iterations`.
   */
  readonly endedBy?: 'dispatch' | 'end' | 'outcome' | 'satisfied' | 'max-iterations';
  /** The decisions and their results. */
  readonly iterations: readonly {
    /** The intents of the iteration, and the reason for them. */
    readonly decision: {
      /** The source of the decision: the route, the router, the only intent, the `initialIntent`, or `evaluate`. */
      readonly source: 'route' | 'router' | 'single' | 'initial' | 'reassigned';
      readonly intents: readonly string[];
      readonly reasoning?: string;
      readonly raw?: JsonValue;
    };
    readonly intents: readonly {
      readonly intent: string;
      readonly durationMs: number;
      /**
       * The answer, up to 1,000 characters. Present only if several intents answered, or there were several iterations.
       */
      readonly text?: string;
      readonly usage?: TokenCounts;
    }[];
    readonly evaluation?: Evaluation;
    /** Absent if the iteration did not complete. */
    readonly durationMs?: number;
  }[];
  /** The tokens of all attempts passed to `turn.usage.add`, by role and in total (FIX-15). */
  readonly usage?: TokenCounts & {
    readonly router?: TokenCounts;
    readonly intents?: TokenCounts;
    readonly evaluate?: TokenCounts;
    /** The tokens of the compaction that the turn reports. */
    readonly summarizer?: TokenCounts;
  };
  /** The versions that the state was migrated through when it was loaded. */
  readonly migrated?: readonly string[];
  /** The compactions since the orchestrator's previous turn (BOT-43). */
  readonly compaction?:
    | {
        /** `restored`: a compaction was reverted, or messages that its summary covered were undone. */
        readonly status: 'applied' | 'restored';
        readonly number: number;
        /** The summary covers messages up to this position. */
        readonly through: number;
        readonly usage?: TokenCounts;
      }
    | {
        readonly status: 'failed';
        /** The phase that failed: reading the log, writing the summary, or replacing the messages. */
        readonly phase: 'load' | 'summarize' | 'apply';
        readonly message: string;
        /** The number of consecutive failures. */
        readonly failures: number;
        /** The earliest time of a retry, ISO-8601. */
        readonly retryAt: string;
      };
  /** State modules that were reset after the turn began: the turn's writes to them are not stored (STA-23). */
  readonly dropped?: readonly string[];
}

export type EndedBy = NonNullable<TurnReport['endedBy']>;
export type IterationReport = TurnReport['iterations'][number];
export type DecisionReport = IterationReport['decision'];
export type DecisionSource = DecisionReport['source'];
export type IntentReport = IterationReport['intents'][number];
export type UsageReport = NonNullable<TurnReport['usage']>;
export type CompactionReport = NonNullable<TurnReport['compaction']>;

export function asJson(report: TurnReport): JsonObject {
  return report as unknown as JsonObject;
}
