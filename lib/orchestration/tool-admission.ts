import { describeAvailable, isAvailable } from './available-tools.js';
import { type OrchestrationStep } from './orchestration-config.js';
import { type Decision, type OrchestrationEffect, type OrchestrationEntry } from './orchestration-entry.js';
import {
  enterStep,
  indexOfStep,
  type OrchestrationProgress,
  type SequenceMove,
  type ToolOutcome,
  type ToolUse,
  withIndexOfStep,
} from './orchestration-state.js';

type AdmitEntry = Extract<OrchestrationEntry, { type: 'admit' }>;

/**
 * Checks a use and, if it is allowed, records it (FIX-21). Pure: for concurrent uses, their order in the store decides.
 * @param step the active step
 * @param use records the use as succeeded
 */
export function admitUse(
  before: OrchestrationProgress,
  { tool, onViolation }: AdmitEntry,
  step: OrchestrationStep | undefined,
  use: (progress: OrchestrationProgress) => Decision,
): Decision {
  const index = indexOfStep(before, step?.name);
  if (!step || isAvailable(step, index, tool)) return withMove(before, use(before));
  const { allowed } = describeAvailable(step, index);
  const violated: OrchestrationEffect = { type: 'tool-violated', tool, step: step.name, allowed };
  const restarts = onViolation === 'reset' && isAvailable(step, 0, tool);
  if (!restarts && onViolation !== 'warn') return { progress: before, effects: [violated] };
  const start = restarts ? withIndexOfStep(before, step.name, 0) : before;
  const { progress, effects } = withMove(start, use(start));
  return { progress, effects: [violated, ...effects] };
}

/** Sets the outcome of an admitted use. A failed use moves no sequence: the move of its admission is reverted. */
export function completeUse(before: OrchestrationProgress, use: ToolUse, outcome: ToolOutcome): OrchestrationProgress {
  const { moved, ...about } = use;
  const toolHistory = before.toolHistory.map((each) => (each === use ? { ...about, outcome } : each));
  const completed = { ...before, toolHistory };
  if (outcome === 'succeeded') return completed;
  const isUsed = toolHistory.some((each) => each.tool === use.tool && each.outcome !== 'failed');
  const recentlyUsedTools = before.recentlyUsedTools.filter((tool) => isUsed || tool !== use.tool);
  return movedBack({ ...completed, recentlyUsedTools }, moved);
}

/** Reverts a move, unless other uses have moved on from there. */
function movedBack(progress: OrchestrationProgress, move: SequenceMove | undefined): OrchestrationProgress {
  if (!move || progress.activeStep !== move.toStep) return progress;
  const { fromStep, fromIndex, toIndex } = move;
  if (indexIn(progress, fromStep) !== toIndex) return progress;
  return { ...enterStep(progress, fromStep), sequenceIndex: fromIndex };
}

/** Stores the move of an admission with the newest use. */
function withMove(before: OrchestrationProgress, { progress, effects: all }: Decision): Decision {
  // The outcome records the use, and the check above has reported the violation.
  const effects = all.filter(({ type }) => type !== 'tool-recorded' && type !== 'tool-violated');
  const toIndex = indexIn(progress, before.activeStep);
  if (progress.activeStep === before.activeStep && toIndex === before.sequenceIndex) return { progress, effects };
  const moved: SequenceMove = {
    ...(before.activeStep === undefined ? {} : { fromStep: before.activeStep }),
    fromIndex: before.sequenceIndex,
    ...(progress.activeStep === undefined ? {} : { toStep: progress.activeStep }),
    toIndex,
  };
  const toolHistory = progress.toolHistory.with(-1, { ...progress.toolHistory.at(-1)!, moved });
  return { progress: { ...progress, toolHistory }, effects };
}

/** Returns the index of a step that was active, or of no step. */
function indexIn(progress: OrchestrationProgress, step: string | undefined): number {
  return step === undefined && progress.activeStep !== undefined ? 0 : indexOfStep(progress, step);
}
