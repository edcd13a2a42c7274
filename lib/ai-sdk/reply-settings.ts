import { type ToolSet } from 'ai';
import { durableModel } from './durable-model.js';
import { type DurableToolsOptions, storedTools } from './durable-tools.js';
import { type AnyLanguageModel } from './language-model.js';
import { type ModelTurn } from './model-calls.js';
import { type CallingTurn } from './tool-call.js';

/** The limit of steps per answer, unless `stopWhen` is given. */
const MAX_STEPS = 20;

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
}

/**
 * Returns the options of `streamText` for one part of an answer; waits for the user separate the parts. Models and
 * tools become durable, and `stopWhen` and `prepareStep` see all steps of the answer.
 * @param earlier the steps of earlier parts
 */
export function loopSettings(
  turn: ModelTurn & CallingTurn,
  { model, tools, onInterrupted, stopWhen = hasMaxSteps, prepareStep, ...options }: LoopOptions,
  earlier: readonly object[],
): object {
  const conditions: readonly Condition[] = [stopWhen].flat();
  return {
    // Summaries of the conversation are messages of the system.
    allowSystemInMessages: true,
    ...options,
    model: durableModel(turn, model),
    ...(tools && { tools: storedTools(turn, tools, { onInterrupted }) }),
    stopWhen: conditions.map(
      (isMet): Condition =>
        ({ steps }) =>
          isMet({ steps: [...earlier, ...steps] }),
    ),
    ...(prepareStep && {
      prepareStep: async (step: Step) => {
        const steps = [...earlier, ...step.steps];
        const prepared = await prepareStep({ ...step, steps, stepNumber: steps.length });
        const other = prepared?.model === step.model ? undefined : prepared?.model;
        return other ? { ...prepared, model: durableModel(turn, other) } : prepared;
      },
    }),
    abortSignal: turn.signal,
    maxRetries: 0,
  };
}

function hasMaxSteps({ steps }: { readonly steps: readonly object[] }): boolean {
  return steps.length >= MAX_STEPS;
}
