import { deepFreeze } from '../common/json.js';
import { type TokenCounts } from '../common/token-counts.js';

/** One use of a tool. */
export interface ToolUse {
  readonly tool: string;
  /** The step that was active. */
  readonly step?: string;
  /** When the use was recorded, ISO-8601, by the store's clock. Inside a turn, it is the time when the turn settled. */
  readonly at: string;
  readonly callId?: string;
  /** The digest of the call's input, if the caller passed it: 64 hexadecimal digits. */
  readonly input?: string;
  /** The turn that used the tool; absent for uses outside of turns. */
  readonly turnId?: string;
  /** `admitted` uses have no outcome yet, and count as succeeded. A `failed` use is recorded, and moves no sequence. */
  readonly outcome: 'succeeded' | 'failed' | 'admitted';
  /**
   * The move of the active step's sequence, or to another step, that the admission caused and that a failure reverts.
   * Present while `admitted`.
   */
  readonly moved?: {
    /** Absent if no step was active. */
    readonly fromStep?: string;
    /** The index in `fromStep` before. */
    readonly fromIndex: number;
    readonly toStep?: string;
    /** The index in `fromStep` after. */
    readonly toIndex: number;
  };
  /** Present if `StepSequencer.processTool` recorded the use although another tool was next. */
  readonly mismatched?: true;
}

export type SequenceMove = NonNullable<ToolUse['moved']>;
export type ToolOutcome = Exclude<ToolUse['outcome'], 'admitted'>;

/** The progress of an agent in its plan: the part of the state that the agent's actions change. */
export interface OrchestrationProgress {
  readonly activeStep?: string;
  /** Newest first, without duplicates and failed uses; at most `recentTools`. */
  readonly recentlyUsedTools: readonly string[];
  /** The last 100 uses in chronological order. */
  readonly toolHistory: readonly ToolUse[];
  /** The number of completed items in the active step's sequence, from 0. */
  readonly sequenceIndex: number;
  /** The same number for steps that are not active, by name. */
  readonly progress: Readonly<Record<string, number>>;
  readonly cumulativeTokenUsage: TokenCounts;
}

/** The progress as it is stored. */
export interface StoredProgress extends OrchestrationProgress {
  /** The tokens of the turn that last counted some. The turn's next entry replaces them. */
  readonly lastTurn?: { readonly id: string; readonly usage: TokenCounts };
  /** The last turn that stored uses before its settlement (FIX-88). */
  readonly turn?: SharingTurn;
}

/** A turn that stores uses before its settlement, so that admissions outside of the turn count them. */
export interface SharingTurn {
  /** The fence of its last attempt. */
  readonly fence: number;
  /** Absent after the turn has ended. */
  readonly open?: OpenTurn;
}

/** A turn that has not settled. The progress includes its uses. */
export interface OpenTurn {
  readonly id: string;
  /** The progress without the turn: with the changes that others made before and since. */
  readonly base: StoredProgress;
  /** True if a use outside of the turn was admitted after uses of the turn, which therefore keep their place. */
  readonly isFollowed: boolean;
  /** True if such a use was allowed only because of uses of the turn, which therefore count even if the turn fails. */
  readonly isNeeded: boolean;
}

/** Returns the progress without internal fields. */
export function shownProgress({ lastTurn: _, turn: __, ...progress }: StoredProgress): OrchestrationProgress {
  return progress;
}

/** The state of an agent in a session (ORC-01). */
export interface OrchestrationState extends OrchestrationProgress {
  readonly sessionId: string;
  /** Starts at 1 and increases with every change. */
  readonly version: number;
  /** The time of the last change or read, in milliseconds since 1970, by the store's clock. */
  readonly lastAccessed: number;
  /** Milliseconds after `lastAccessed` until the state expires. */
  readonly ttl: number | 'never';
}

/** The length of `toolHistory`. Call ids are compared within it. */
export const TOOL_HISTORY = 100;

export const NO_PROGRESS: OrchestrationProgress = deepFreeze({
  recentlyUsedTools: [],
  toolHistory: [],
  sequenceIndex: 0,
  progress: {},
  cumulativeTokenUsage: { promptTokens: 0, completionTokens: 0, totalTokens: 0 },
});

/** Returns the index of a step's sequence. */
export function indexOfStep(progress: OrchestrationProgress, step: string | undefined): number {
  if (step === undefined || isCurrent(progress, step)) return progress.sequenceIndex;
  return Object.hasOwn(progress.progress, step) ? progress.progress[step] : 0;
}

export function withIndexOfStep(
  progress: OrchestrationProgress,
  step: string | undefined,
  index: number,
): OrchestrationProgress {
  if (step === undefined || isCurrent(progress, step)) return { ...progress, sequenceIndex: index };
  return { ...progress, progress: { ...progress.progress, [step]: index } };
}

/**
 * Returns whether `sequenceIndex` is the index of a step: of the active one. If no step is active, it is the index of
 * all steps that were not left before (ORC-06).
 */
function isCurrent({ activeStep, progress }: OrchestrationProgress, step: string): boolean {
  return activeStep === undefined ? !Object.hasOwn(progress, step) : activeStep === step;
}

/** Leaves the active step, whose index is kept, and enters another one at its stored index (ORC-06). */
export function enterStep(progress: OrchestrationProgress, step: string | undefined): OrchestrationProgress {
  const { activeStep, ...rest } = progress;
  if (activeStep === step) return progress;
  const kept = activeStep === undefined ? rest.progress : { ...rest.progress, [activeStep]: rest.sequenceIndex };
  const left = { ...rest, progress: kept, sequenceIndex: 0 };
  if (step === undefined) return left;
  return { ...left, activeStep: step, sequenceIndex: Object.hasOwn(kept, step) ? kept[step] : 0 };
}
