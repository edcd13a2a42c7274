import { type JsonObject, type JsonValue } from '../common/json.js';
import { type CompactionPhase } from '../conversation/compaction.errors.js';
import { type TokenUsage } from '../common/token-usage.js';
import { type SettledTurnStatus } from '../ledger/turn.js';
import { type Evaluation } from './evaluation.js';

/** The source of a decision: the route, the router, the only intent, the `initialIntent`, or `evaluate`. */
export type DecisionSource = 'route' | 'router' | 'single' | 'initial' | 'reassigned';

/** The intents of an iteration, and the reason for them. */
export interface DecisionReport {
  readonly source: DecisionSource;
  readonly intents: readonly string[];
  readonly reasoning?: string;
  readonly raw?: JsonValue;
}

/** The report of one intent in an iteration. */
export interface IntentReport {
  readonly intent: string;
  readonly durationMs: number;
  /** The answer, up to 1,000 characters. Present only if several intents answered, or there were several iterations. */
  readonly text?: string;
  readonly usage?: TokenUsage;
}

/** One decision and its results. */
export interface IterationReport {
  readonly decision: DecisionReport;
  readonly intents: readonly IntentReport[];
  readonly evaluation?: Evaluation;
  /** Absent if the iteration did not complete. */
  readonly durationMs?: number;
}

/**
 * Why the turn ended: `dispatch` (its only dispatch was done), `end` (the route returned END), `outcome` (an intent set
 * a status), `satisfied` (by `evaluate`), or `max-iterations`.
 */
export type EndedBy = 'dispatch' | 'end' | 'outcome' | 'satisfied' | 'max-iterations';

/**
 * The report of a turn, stored with it (BOT-09). It describes the last attempt if the turn failed or was cancelled.
 */
export interface TurnReport {
  readonly status: SettledTurnStatus;
  readonly attempt: number;
  /** The duration of the last attempt. */
  readonly durationMs: number;
  readonly endedBy?: EndedBy;
  readonly iterations: readonly IterationReport[];
  /** The tokens of all attempts passed to `turn.usage.add`, by role and in total (FIX-15). */
  readonly usage?: UsageReport;
  /** The versions that the state was migrated through when it was loaded. */
  readonly migrated?: readonly string[];
  readonly compaction?: CompactionReport;
  /** State modules that were reset after the turn began: the turn's writes to them are not stored (STA-23). */
  readonly dropped?: readonly string[];
}

export interface UsageReport extends TokenUsage {
  readonly router?: TokenUsage;
  readonly intents?: TokenUsage;
  readonly evaluate?: TokenUsage;
  /** The tokens of the compaction that the turn reports. */
  readonly summarizer?: TokenUsage;
}

/** The compactions since the orchestrator's previous turn (BOT-43). */
export type CompactionReport =
  | {
      /** `restored`: a compaction was reverted, or messages that its summary covered were undone. */
      readonly status: 'applied' | 'restored';
      readonly number: number;
      /** The summary covers messages up to this position. */
      readonly through: number;
      readonly usage?: TokenUsage;
    }
  | {
      readonly status: 'failed';
      readonly phase: CompactionPhase;
      readonly message: string;
      /** The number of consecutive failures. */
      readonly failures: number;
      /** The earliest time of a retry, ISO-8601. */
      readonly retryAt: string;
    };

export function asJson(report: TurnReport): JsonObject {
  return report as unknown as JsonObject;
}
