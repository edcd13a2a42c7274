import { type OrchestrationStep } from './orchestration-config.js';
import { type OrchestrationEffect, type OrchestrationEntry } from './orchestration-entry.js';
import {
  enterStep,
  indexOfStep,
  type OrchestrationProgress,
  TOOL_HISTORY,
  type ToolUse,
  withIndexOfStep,
} from './orchestration-state.js';
import { nextStep } from './step-conditions.js';
import { effectiveStep, stepNamed, type StepPlan } from './step-plan.js';
import { addUsage } from '../common/token-usage.js';
import { indexAfter, isUnfinished, nextTools } from './tool-sequence.js';

/** What `applyEntry` decides by, besides progress and entry. */
export interface OrchestrationRules {
  /** The plan that an entry names; `undefined` when nobody knows it any more: then things are only recorded. */
  readonly plan: (signature: string) => Pick<StepPlan, 'steps'> | undefined;
  /** How many tools `recentlyUsedTools` remembers. */
  readonly recentTools: number;
}

export interface Decision {
  readonly progress: OrchestrationProgress;
  readonly effects: readonly OrchestrationEffect[];
}

/** What follows from an entry: the one place where steps and sequences move. Pure. */
export function applyEntry(
  before: OrchestrationProgress,
  entry: OrchestrationEntry,
  at: string,
  rules: OrchestrationRules,
): Decision {
  const plan = 'plan' in entry && entry.plan !== undefined ? rules.plan(entry.plan) : undefined;
  const start = plan ? adoptStep(before, plan) : 'sequenceOf' in entry ? adopt(before, entry.sequenceOf?.name) : before;
  const decision = decide(start, entry, at, plan, rules.recentTools);
  // That the default step is the active one is no change.
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
type Sequenced = Pick<OrchestrationStep, 'name' | 'sequence' | 'resetSequenceOn'>;
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
    case 'advance':
      return advance(progress, plan && stepNamed(plan, progress.activeStep));
    case 'evaluate':
      return silently(plan ? evaluate(progress, plan, entry.facts) : progress);
    case 'step':
      return silently(enterStep(progress, entry.step ?? undefined));
    case 'restart':
      return silently({ ...progress, sequenceIndex: 0 });
    case 'tokens':
      return silently({ ...progress, cumulativeTokenUsage: addUsage(progress.cumulativeTokenUsage, entry.usage) });
    case 'merge': {
      const { activeStep, recentlyUsedTools, ...updates } = entry.updates;
      const entered = activeStep !== undefined || entry.unset.includes('activeStep');
      const recent = recentlyUsedTools && [...new Set(recentlyUsedTools)].slice(0, recentTools);
      return silently({
        ...(entered ? enterStep(progress, activeStep) : progress),
        ...updates,
        ...(recent ? { recentlyUsedTools: recent } : {}),
      });
    }
  }
}

/** Without an active step, or with one that the plan does not know, the default one is active (ORC-25). */
function adoptStep(progress: OrchestrationProgress, plan: Plan): OrchestrationProgress {
  const step = effectiveStep(plan, progress.activeStep)?.name;
  return progress.activeStep === undefined || step === progress.activeStep
    ? adopt(progress, step)
    : enterStep(progress, step);
}

/** Where no step is active, this one is, and the index was its own all along. */
function adopt(progress: OrchestrationProgress, step: string | undefined): OrchestrationProgress {
  return step === undefined || progress.activeStep !== undefined ? progress : { ...progress, activeStep: step };
}

/** Records, advances the sequence, then looks for the active step (ORC-30). A use that failed advances nothing. */
function useTool(
  before: OrchestrationProgress,
  { tool, callId, turnId, outcome, facts, sequenceOf }: ToolEntry,
  at: string,
  plan: Plan | undefined,
  recentTools: number,
): Decision {
  const isSame = (use: ToolUse): boolean => use.callId === callId && use.turnId === turnId;
  // The same call recorded again (ORC-07). One that failed may have been made again, and have succeeded.
  const known = callId === undefined ? [] : before.toolHistory.filter(isSame);
  if (known.some((use) => use.outcome === 'succeeded' || use.outcome === outcome)) return silently(before);
  const about = {
    tool,
    ...(before.activeStep === undefined ? {} : { step: before.activeStep }),
    ...(callId === undefined ? {} : { callId }),
    ...(turnId === undefined ? {} : { turnId }),
    outcome,
  };
  const told: OrchestrationEffect = { type: 'tool-recorded', ...about };
  const recorded = record(before, { ...about, at }, recentTools);
  const step = plan && stepNamed(plan, before.activeStep);
  const sequenced = sequenceOf ?? step;
  const moved = sequenced && outcome === 'succeeded' ? moveSequence(recorded, sequenced, tool) : silently(recorded);
  const effects = [told, ...moved.effects];
  const handedOver = step && handOver(moved, step);
  if (handedOver) return { progress: handedOver, effects };
  return { progress: plan && facts ? evaluate(moved.progress, plan, facts) : moved.progress, effects };
}

/** Where the step's sequence has just been completed and says what is next: there. It begins anew when it is entered again. */
function handOver({ progress, effects }: Decision, { onComplete }: OrchestrationStep): OrchestrationProgress | null {
  const completed = effects.some(({ type }) => type === 'sequence-completed');
  return completed && onComplete !== undefined ? enterStep({ ...progress, sequenceIndex: 0 }, onComplete) : null;
}

function record(progress: OrchestrationProgress, use: ToolUse, recentTools: number): OrchestrationProgress {
  const toolHistory = [...progress.toolHistory, use].slice(-TOOL_HISTORY);
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
  if (restarts) return silently(start);
  const allowed = nextTools(sequence, index);
  return { progress, effects: [{ type: 'tool-violated', tool, step, allowed }] };
}

function evaluate(progress: OrchestrationProgress, plan: Plan, facts: readonly string[]): OrchestrationProgress {
  const next = nextStep(plan, progress, new Set(facts));
  return next ? enterStep(progress, next.name) : progress;
}

/** ORC-08: one more, up to the end of the active step's sequence where that is known. */
function advance(progress: OrchestrationProgress, step: OrchestrationStep | undefined): Decision {
  const after = progress.sequenceIndex + 1;
  if (!step) return { progress: { ...progress, sequenceIndex: after }, effects: advanced(undefined, after) };
  const { name, sequence = [] } = step;
  if (after > sequence.length) return silently(progress);
  const moved = { progress: { ...progress, sequenceIndex: after }, effects: advanced(name, after, sequence.length) };
  return { progress: handOver(moved, step) ?? moved.progress, effects: moved.effects };
}

function advanced(step: string | undefined, index: number, length = Infinity): OrchestrationEffect[] {
  const about = step === undefined ? {} : { step };
  const effect: OrchestrationEffect = { type: 'sequence-advanced', ...about, index };
  return index < length ? [effect] : [effect, { type: 'sequence-completed', ...about }];
}

function silently(progress: OrchestrationProgress): Decision {
  return { progress, effects: [] };
}
