import { deepFreeze } from '../common/json.js';
import { type TokenUsage } from '../common/token-usage.js';

/** One use of a tool. */
export interface ToolUse {
  readonly tool: string;
  /** The step that was active. */
  readonly step?: string;
  /** ISO-8601, by the store's clock: when it was recorded, for uses inside a turn when that settled. */
  readonly at: string;
  readonly callId?: string;
  /** Digest of the call's input, where the caller gave it: 64 hexadecimal digits. */
  readonly input?: string;
  /** The turn that used it; absent for uses outside of turns. */
  readonly turnId?: string;
  /** `admitted`: it has no outcome yet, and counts as one that succeeded. */
  readonly outcome: ToolOutcome | 'admitted';
  /** Set while `admitted`: what its admission moved, and what its failure moves back. */
  readonly moved?: SequenceMove;
}

/** A move of the active step's sequence, or to another step. */
export interface SequenceMove {
  /** Absent: no step was active. */
  readonly fromStep?: string;
  /** The index in `fromStep` before. */
  readonly fromIndex: number;
  readonly toStep?: string;
  /** The index in `fromStep` after. */
  readonly toIndex: number;
}

/** What came of a call: a `failed` one is remembered, and moves no sequence. */
export type ToolOutcome = 'succeeded' | 'failed';

/** How far an agent is in its plan: the part of the state that changes by what the agent does. */
export interface OrchestrationProgress {
  readonly activeStep?: string;
  /** Newest first, each tool once, of uses that did not fail; at most `recentTools`. */
  readonly recentlyUsedTools: readonly string[];
  /** Chronological, the last 100 uses. */
  readonly toolHistory: readonly ToolUse[];
  /** How many items of the active step's sequence are done, from 0. */
  readonly sequenceIndex: number;
  /** The same for steps that were left, by name. */
  readonly progress: Readonly<Record<string, number>>;
  readonly cumulativeTokenUsage: TokenUsage;
}

/** The progress as it is stored. */
export interface StoredProgress extends OrchestrationProgress {
  /** The part of the tokens that the turn took which counted some last: its next entry replaces the part. */
  readonly lastTurn?: { readonly id: string; readonly usage: TokenUsage };
}

/** The progress as it is shown. */
export function shownProgress({ lastTurn: _, ...progress }: StoredProgress): OrchestrationProgress {
  return progress;
}

/** What is known of an agent in a session (ORC-01). */
export interface OrchestrationState extends OrchestrationProgress {
  readonly sessionId: string;
  /** 1 when created, one more with every change. */
  readonly version: number;
  /** Milliseconds since 1970, by the store's clock: the last change or read. */
  readonly lastAccessed: number;
  /** Milliseconds after `lastAccessed` until it is gone. */
  readonly ttl: number | 'never';
}

/** How many uses `toolHistory` remembers; call ids are told apart within them. */
export const TOOL_HISTORY = 100;

export const NO_PROGRESS: OrchestrationProgress = deepFreeze({
  recentlyUsedTools: [],
  toolHistory: [],
  sequenceIndex: 0,
  progress: {},
  cumulativeTokenUsage: { promptTokens: 0, completionTokens: 0, totalTokens: 0 },
});

/** How far a step's sequence is. Without an active step the index is of whichever step is asked for. */
export function indexOfStep(progress: OrchestrationProgress, step: string | undefined): number {
  const { activeStep, sequenceIndex } = progress;
  if (step === undefined || activeStep === undefined || activeStep === step) return sequenceIndex;
  return Object.hasOwn(progress.progress, step) ? progress.progress[step] : 0;
}

export function withIndexOfStep(
  progress: OrchestrationProgress,
  step: string | undefined,
  index: number,
): OrchestrationProgress {
  const { activeStep } = progress;
  if (step === undefined || activeStep === undefined || activeStep === step) {
    return { ...progress, sequenceIndex: index };
  }
  return { ...progress, progress: { ...progress.progress, [step]: index } };
}

/** Leaves the active step, whose index is kept, and enters another one where that was left (ORC-06). */
export function enterStep(progress: OrchestrationProgress, step: string | undefined): OrchestrationProgress {
  const { activeStep, ...rest } = progress;
  if (activeStep === step) return progress;
  const kept = activeStep === undefined ? rest.progress : { ...rest.progress, [activeStep]: rest.sequenceIndex };
  const left = { ...rest, progress: kept, sequenceIndex: 0 };
  if (step === undefined) return left;
  return { ...left, activeStep: step, sequenceIndex: Object.hasOwn(kept, step) ? kept[step] : 0 };
}
