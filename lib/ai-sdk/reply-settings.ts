import { type ToolSet } from 'ai';
import { DurableLanguageModel, durableModel } from './durable-model.js';
import {
  type DurableToolsOptions,
  storedApproval,
  storedRepair,
  storedTools,
  type ToolApproval,
} from './durable-tools.js';
import { type AnyLanguageModel } from './language-model.js';
import { type ModelTurn } from './model-calls.js';
import { type CallingTurn, type RepairToolCall } from './tool-call.js';

/** The limit of steps per answer, unless `stopWhen` is given. */
const MAX_STEPS = 20;

/** Ends an answer in place of the next call of the model. */
export const END_OF_ANSWER = new Error('The answer ends, because a condition of `stopWhen` is met.');

/** A condition of `stopWhen`. */
type Condition = (progress: { readonly steps: readonly object[] }) => PromiseLike<boolean> | boolean;

/** The argument of `prepareStep`. */
interface Step {
  readonly model: unknown;
  readonly steps: readonly object[];
  readonly stepNumber: number;
}

/** The options of `streamText` that this package changes, and those of tools. */
export interface LoopOptions extends DurableToolsOptions {
  readonly model: AnyLanguageModel;
  readonly tools?: ToolSet;
  readonly stopWhen?: Condition | readonly Condition[];
  readonly prepareStep?: (step: Step) => Promise<{ readonly model?: AnyLanguageModel } | undefined>;
  /** Version 7 has it. */
  readonly toolApproval?: ToolApproval;
  /** Version 7 has it. */
  readonly repairToolCall?: RepairToolCall;
  readonly experimental_repairToolCall?: RepairToolCall;
}

/**
 * Returns the options of `streamText` for one part of an answer; waits for the user separate the parts. Models, tools,
 * approvals and repairs of calls become durable, and `stopWhen` and `prepareStep` see all steps of the answer.
 *
 * The SDK checks no conditions after a step that waits for the user. If one is met then, the next part runs the tools
 * that the user has approved, and fails with {@link END_OF_ANSWER} in place of a call of the model.
 * @param earlier the steps of earlier parts
 */
export function loopSettings(
  turn: ModelTurn & CallingTurn,
  { model, tools, onInterrupted, stopWhen = hasMaxSteps, prepareStep, ...options }: LoopOptions,
  earlier: readonly object[],
): object {
  const conditions: readonly Condition[] = [stopWhen].flat();
  const isOver: Condition = async ({ steps }) => {
    const results = await Promise.all(conditions.map(async (isMet) => isMet({ steps: [...earlier, ...steps] })));
    return results.some((isMet) => isMet);
  };
  const { toolApproval, repairToolCall, experimental_repairToolCall: repairOfVersion6 } = options;
  return {
    // Summaries of the conversation are messages of the system.
    allowSystemInMessages: true,
    ...options,
    model: toDurable(turn, model),
    ...(tools && { tools: storedTools(turn, tools, { onInterrupted }) }),
    ...(toolApproval && { toolApproval: storedApproval(turn, toolApproval) }),
    ...(repairToolCall && { repairToolCall: storedRepair(turn, repairToolCall) }),
    ...(repairOfVersion6 && { experimental_repairToolCall: storedRepair(turn, repairOfVersion6) }),
    stopWhen: isOver,
    prepareStep: async (step: Step) => {
      const isContinued = step.steps.length === 0 && earlier.length > 0;
      if (isContinued && (await isOver(step))) throw END_OF_ANSWER;
      const steps = [...earlier, ...step.steps];
      const prepared = await prepareStep?.({ ...step, steps, stepNumber: steps.length });
      return prepared?.model ? { ...prepared, model: toDurable(turn, prepared.model) } : prepared;
    },
    abortSignal: turn.signal,
    maxRetries: 0,
    // Version 7 retries streams only if it is undefined, not 0.
    streamRetries: undefined,
  };
}

/** A model that is durable already keeps its key. */
function toDurable(turn: ModelTurn, model: AnyLanguageModel): AnyLanguageModel {
  return model instanceof DurableLanguageModel ? model : durableModel(turn, model);
}

function hasMaxSteps({ steps }: { readonly steps: readonly object[] }): boolean {
  return steps.length >= MAX_STEPS;
}
