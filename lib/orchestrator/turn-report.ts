import { type JsonObject, type JsonValue } from '../common/json.js';
import { type CompactionPhase } from '../conversation/compaction.errors.js';
import { type TokenUsage } from '../common/token-usage.js';
import { type SettledTurnStatus } from '../ledger/turn.js';
import { type Evaluation } from './evaluation.js';

/** Who chose the intents: the route, the router, the only intent there is, the `initialIntent`, or `evaluate`. */
export type DecisionSource = 'route' | 'router' | 'single' | 'initial' | 'reassigned';

/** Where an iteration went, and why. */
export interface DecisionReport {
  readonly source: DecisionSource;
  readonly intents: readonly string[];
  readonly reasoning?: string;
  readonly raw?: JsonValue;
}

/** What an intent did in an iteration. */
export interface IntentReport {
  readonly intent: string;
  readonly durationMs: number;
  /** What it answered, up to 1,000 characters; only where several intents answered, or iterations followed. */
  readonly text?: string;
  readonly usage?: TokenUsage;
}

/** One decision and what came of it. */
export interface IterationReport {
  readonly decision: DecisionReport;
  readonly intents: readonly IntentReport[];
  readonly evaluation?: Evaluation;
  /** Absent on one that did not come to its end. */
  readonly durationMs?: number;
}

/**
 * Why a turn went no further: one `dispatch` was all, the route said `end`, an `outcome` had a status, `evaluate` was
 * `satisfied`, or `max-iterations` was reached.
 */
export type EndedBy = 'dispatch' | 'end' | 'outcome' | 'satisfied' | 'max-iterations';

/** What a turn did, stored with it (BOT-09). Of a turn that failed or was cancelled: what its last attempt did. */
export interface TurnReport {
  readonly status: SettledTurnStatus;
  readonly attempt: number;
  /** Of the last attempt. */
  readonly durationMs: number;
  readonly endedBy?: EndedBy;
  readonly iterations: readonly IterationReport[];
  /** The tokens of all attempts, as `turn.usage.add` was told: by whom, and together (FIX-15). */
  readonly usage?: UsageReport;
  /** The versions that the state went through when it was loaded. */
  readonly migrated?: readonly string[];
  readonly compaction?: CompactionReport;
  /** State modules that were reset since the turn began: what it was to write to them is not stored (STA-23). */
  readonly dropped?: readonly string[];
}

export interface UsageReport extends TokenUsage {
  readonly router?: TokenUsage;
  readonly intents?: TokenUsage;
  readonly evaluate?: TokenUsage;
  /** Of the compaction that the turn reports. */
  readonly summarizer?: TokenUsage;
}

/** What came of compaction since the orchestrator's turn before (BOT-43). */
export type CompactionReport =
  | {
      /** `restored`: a compaction was taken back, or messages that were behind its summary. */
      readonly status: 'applied' | 'restored';
      readonly number: number;
      /** Messages up to this position are behind the summary. */
      readonly through: number;
      readonly usage?: TokenUsage;
    }
  | {
      readonly status: 'failed';
      readonly phase: CompactionPhase;
      readonly message: string;
      /** How often in a row. */
      readonly failures: number;
      /** ISO-8601: not tried again before. */
      readonly retryAt: string;
    };

export function asJson(report: TurnReport): JsonObject {
  return report as unknown as JsonObject;
}
