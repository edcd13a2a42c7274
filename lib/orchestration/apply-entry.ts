import { describeAvailable, isAvailable } from './available-tools.js';
import { type OrchestrationStep } from './orchestration-config.js';
import {
  type Decision,
  type OrchestrationEffect,
  type OrchestrationEntry,
  recentToolsOf,
} from './orchestration-entry.js';
import {
  enterStep,
  indexOfStep,
  type OrchestrationProgress,
  type StoredProgress,
  TOOL_HISTORY,
  type ToolOutcome,
  type ToolUse,
  withIndexOfStep,
} from './orchestration-state.js';
import { nextStep } from './step-conditions.js';
import { effectiveStep, stepNamed, type StepPlan } from './step-plan.js';
import { type Mutable } from '../common/mutable.js';
import { addUsage, subtractUsage } from '../common/token-counts.js';
import { admitUse, completeUse } from './tool-admission.js';
import { isSameCall } from './tool-call.js';
import { indexAfter, isUnfinished } from './tool-sequence.js';

/** The rules that `applyEntry` uses besides progress and entry. */
export interface OrchestrationRules {
  /** Returns the plan that an entry names; `undefined` if it is unknown. Entries are then only recorded. */
  readonly plan: (signature: string) => Pick<StepPlan, 'steps'> | undefined;
}

/** Returns the result of an entry. All moves of steps and sequences are decided here. Pure. */
export function applyEntry(
  before: OrchestrationProgress,
  entry: OrchestrationEntry,
  at: string,
  rules: OrchestrationRules,
): Decision {
  const plan = 'plan' in entry && entry.plan !== undefined ? rules.plan(entry.plan) : undefined;
  const start = plan ? adoptStep(before, plan) : before;
  const decision = decide(start, entry, at, plan, recentToolsOf(entry));
  // Activating the default step initially is not a change.
  const from = before.activeStep ?? start.activeStep;
  const to = decision.progress.activeStep;
  if (from === to) return decision;
  const changed: OrchestrationEffect = {
    type: 'step-changed',
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
  };
  return { progress: decision.progress, effects: [...decision.effects, changed] };
}

type Plan = Pick<StepPlan, 'steps'>;
type ToolRecorded = Extract<OrchestrationEffect, { type: 'tool-recorded' }>;
type Sequenced = Pick<OrchestrationStep, 'name' | 'sequence' | 'resetSequenceOn'>;
type TokensEntry = Extract<OrchestrationEntry, { type: 'tokens' }>;
type ToolEntry = Extract<OrchestrationEntry, { type: 'tool' }>;

function decide(
  progress: OrchestrationProgress,
  entry: OrchestrationEntry,
  at: string,
  plan: Plan | undefined,
  recentTools: number,
): Decision {
  switch (entry.type) {
    case 'tool':
      return useTool(progress, entry, at, plan, recentTools);
    case 'admit': {
      const { callId, turnId } = entry;
      if (usesWith(progress, callId, turnId).some(({ outcome }) => outcome !== 'failed')) return silently(progress);
      const use = { ...entry, type: 'tool', outcome: 'admitted' } as const;
      const step = plan && stepNamed(plan, progress.activeStep);
      return admitUse(progress, entry, step, (from) => useTool(from, use, at, plan, recentTools));
    }
    case 'outcome': {
      const admitted = usesWith(progress, entry.callId).find(({ outcome }) => outcome === 'admitted');
      return admitted ? complete(progress, admitted, entry.outcome, entry.facts, plan) : silently(progress);
    }
    case 'advance':
      return entry.sequenceOf
        ? advanceSequence(progress, entry.sequenceOf)
        : advance(progress, plan && stepNamed(plan, progress.activeStep));
    case 'evaluate':
      return silently(plan ? evaluate(progress, plan, entry.facts) : progress);
    case 'step':
      return silently(enterStep(progress, entry.step ?? undefined));
    case 'restart':
      return silently({ ...progress, sequenceIndex: 0 });
    case 'tokens':
      return silently(countTokens(progress, entry));
    case 'merge': {
      const { activeStep, recentlyUsedTools, ...updates } = entry.updates;
      const entered = activeStep !== undefined || entry.unset.includes('activeStep');
      const recent = recentlyUsedTools && [...new Set(recentlyUsedTools)].slice(0, recentTools);
      const start = updates.progress ? { ...progress, progress: updates.progress } : progress;
      return silently({
        ...(entered ? enterStep(start, activeStep) : progress),
        ...updates,
        ...(recent ? { recentlyUsedTools: recent } : {}),
      });
    }
  }
}

/** Replaces the tokens that earlier entries of the same turn counted, so that none counts twice. */
function countTokens(progress: StoredProgress, { usage, turnId }: TokensEntry): StoredProgress {
  const { cumulativeTokenUsage, lastTurn } = progress;
  if (turnId === undefined) return { ...progress, cumulativeTokenUsage: addUsage(cumulativeTokenUsage, usage) };
  const others = lastTurn?.id === turnId ? subtractUsage(cumulativeTokenUsage, lastTurn.usage) : cumulativeTokenUsage;
  return { ...progress, cumulativeTokenUsage: addUsage(others, usage), lastTurn: { id: turnId, usage } };
}

/** Activates the default step if no step is active, or the plan does not have it (ORC-25). */
function adoptStep(progress: OrchestrationProgress, plan: Plan): OrchestrationProgress {
  const step = effectiveStep(plan, progress.activeStep)?.name;
  return progress.activeStep === undefined || step === progress.activeStep
    ? adopt(progress, step)
    : enterStep(progress, step);
}

/** Activates the step if none is active. */
function adopt(progress: OrchestrationProgress, step: string | undefined): OrchestrationProgress {
  if (step === undefined || progress.activeStep !== undefined) return progress;
  return { ...progress, activeStep: step, sequenceIndex: indexOfStep(progress, step) };
}

/**
 * Records the use, advances the sequence, then evaluates the active step (ORC-30). A failed use does not advance the
 * sequence.
 */
function useTool(
  before: OrchestrationProgress,
  { tool, callId, input, turnId, outcome, facts, sequenceOf }: ToolEntry,
  at: string,
  plan: Plan | undefined,
  recentTools: number,
): Decision {
  // A call that is recorded again changes nothing (ORC-07), unless it failed before and was repeated with success.
  const known = callId === undefined ? [] : usesWith(before, callId, turnId);
  // After a failure, a turn can use the id for another call (FIX-63).
  const isOther = known.some(
    (use) => (turnId === undefined || use.outcome !== 'failed') && !isSameCall(use, { tool, input }),
  );
  if (isOther || known.some((use) => use.outcome === 'succeeded' || use.outcome === outcome)) return silently(before);
  const admitted = known.find((use) => use.outcome === 'admitted');
  if (admitted && outcome !== 'admitted') return complete(before, admitted, outcome, facts, plan);
  const { activeStep } = before;
  // Properties are set one by one, because V8 creates a new hidden class each time that a literal spreads an object and
  // adds to it.
  const use: Mutable<ToolUse> = { tool, outcome, at };
  const toolRecorded: Mutable<ToolRecorded> = { type: 'tool-recorded', tool, outcome };
  if (activeStep !== undefined) use.step = toolRecorded.step = activeStep;
  if (callId !== undefined) use.callId = toolRecorded.callId = callId;
  if (input !== undefined) use.input = input;
  if (turnId !== undefined) use.turnId = toolRecorded.turnId = turnId;
  const step = plan && stepNamed(plan, activeStep);
  const sequenced = sequenceOf ?? step;
  const violations = violationOf(before, tool, sequenced);
  if (sequenceOf && violations.length > 0) use.mismatched = true;
  const recorded = record(before, use, recentTools);
  const moved = sequenced && outcome !== 'failed' ? moveSequence(recorded, sequenced, tool) : silently(recorded);
  const effects = [toolRecorded, ...violations, ...moved.effects];
  const handedOver = step && handOver(moved, step);
  if (handedOver) return { progress: handedOver, effects };
  return { progress: plan && facts ? evaluate(moved.progress, plan, facts) : moved.progress, effects };
}

/** Returns the uses of a call in the history: several if it failed and was repeated. */
function usesWith({ toolHistory }: OrchestrationProgress, callId: string, turnId?: string): readonly ToolUse[] {
  const uses: ToolUse[] = [];
  // A loop, because every use searches the whole history.
  for (const use of toolHistory) if (use.turnId === turnId && use.callId === callId) uses.push(use);
  return uses;
}

/** Sets the outcome of an admitted use. Only a failure changes the result of conditions. */
function complete(
  before: OrchestrationProgress,
  admitted: ToolUse,
  outcome: ToolOutcome,
  facts: readonly string[] | undefined,
  plan: Plan | undefined,
): Decision {
  const { at: _at, moved: _moved, ...about } = admitted;
  const completed = completeUse(before, admitted, outcome);
  const isEvaluated = plan && facts && outcome === 'failed';
  return {
    progress: isEvaluated ? evaluate(completed, plan, facts) : completed,
    effects: [{ type: 'tool-recorded', ...about, outcome }],
  };
}

/**
 * Returns the progress in the `onComplete` step if the sequence has just been completed. The sequence restarts when its
 * step is entered again.
 */
function handOver({ progress, effects }: Decision, { onComplete }: OrchestrationStep): OrchestrationProgress | null {
  const completed = effects.some(({ type }) => type === 'sequence-completed');
  return completed && onComplete !== undefined ? enterStep({ ...progress, sequenceIndex: 0 }, onComplete) : null;
}

function record(progress: OrchestrationProgress, use: ToolUse, recentTools: number): OrchestrationProgress {
  const toolHistory = progress.toolHistory.slice(1 - TOOL_HISTORY);
  toolHistory.push(use);
  if (use.outcome === 'failed') return { ...progress, toolHistory };
  const others = progress.recentlyUsedTools.filter((tool) => tool !== use.tool);
  return { ...progress, toolHistory, recentlyUsedTools: [use.tool, ...others].slice(0, recentTools) };
}

function moveSequence(
  progress: OrchestrationProgress,
  { name: step, sequence = [], resetSequenceOn = [] }: Sequenced,
  tool: string,
): Decision {
  const restarts = resetSequenceOn.includes(tool);
  const start = restarts ? withIndexOfStep(progress, step, 0) : progress;
  const index = indexOfStep(start, step);
  if (!isUnfinished(sequence, index)) return silently(start);
  const after = indexAfter(sequence, index, tool);
  if (after !== null) {
    return { progress: withIndexOfStep(start, step, after), effects: advanced(step, after, sequence.length) };
  }
  return silently(restarts ? start : progress);
}

/**
 * Returns at most one effect, if the use was recorded although the plan, or the sequence of a step, does not allow it
 * (FIX-28).
 */
function violationOf(
  before: OrchestrationProgress,
  tool: string,
  step: OrchestrationStep | undefined,
): OrchestrationEffect[] {
  if (!step) return [];
  const index = indexOfStep(before, step.name);
  if (isAvailable(step, index, tool)) return [];
  return [{ type: 'tool-violated', tool, step: step.name, allowed: describeAvailable(step, index).allowed }];
}

function evaluate(progress: OrchestrationProgress, plan: Plan, facts: readonly string[]): OrchestrationProgress {
  const next = nextStep(plan, progress, new Set(facts));
  return next ? enterStep(progress, next.name) : progress;
}

/** Advances by one, up to the end of the active step's sequence if it is known (ORC-08). */
function advance(progress: OrchestrationProgress, step: OrchestrationStep | undefined): Decision {
  const after = progress.sequenceIndex + 1;
  if (!step) return { progress: { ...progress, sequenceIndex: after }, effects: advanced(undefined, after) };
  const { name, sequence = [] } = step;
  if (after > sequence.length) return silently(progress);
  const moved = { progress: { ...progress, sequenceIndex: after }, effects: advanced(name, after, sequence.length) };
  return { progress: handOver(moved, step) ?? moved.progress, effects: moved.effects };
}

/** Advances the sequence of any step, active or not (FIX-27). */
function advanceSequence(progress: OrchestrationProgress, { name, sequence = [] }: Sequenced): Decision {
  const after = indexOfStep(progress, name) + 1;
  if (after > sequence.length) return silently(progress);
  return { progress: withIndexOfStep(progress, name, after), effects: advanced(name, after, sequence.length) };
}

function advanced(step: string | undefined, index: number, length = Infinity): OrchestrationEffect[] {
  const about = step === undefined ? {} : { step };
  const effect: OrchestrationEffect = { type: 'sequence-advanced', ...about, index };
  return index < length ? [effect] : [effect, { type: 'sequence-completed', ...about }];
}

function silently(progress: OrchestrationProgress): Decision {
  return { progress, effects: [] };
}
