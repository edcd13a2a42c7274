import { SessionsError } from '../common/sessions.error.js';
import { HandlerError } from '../ledger/handler.error.js';
import { chatMessages } from './chat.messages.js';

/** @inline */
interface AnswerErrorOptions {
  /** The sentence for logs, without ids and values. */
  readonly logged: string;
  /** The fields of the error. Default: none. */
  readonly details?: Partial<Pick<AnswerError, 'call' | 'differences' | 'key' | 'partType' | 'step'>>;
}

/**
 * An answer of a model cannot be used in this attempt. The turn is retried within its limit. HTTP 500.
 *
 * - `MODEL_PROMPT_MISMATCH`: an earlier attempt has stored the answer of a model call, but this attempt asks something else (AIS-02).
 *   The model is not called, because another attempt may ask the same again: for example, on a worker with the previous version of a
 *   prompt,
 * - `FINISHED_STEP_CHANGED`: this attempt answers differently in a step that an earlier attempt has finished and shown (AIS-14). Clients
 *   can replace the last step only,
 * - `INCOMPLETE_ANSWER`: a streamed answer ended without its last part, so it is not stored.
 */
export class AnswerError extends SessionsError {
  static override readonly codes = ['FINISHED_STEP_CHANGED', 'INCOMPLETE_ANSWER', 'MODEL_PROMPT_MISMATCH'] as const;

  /** The key of the model (`MODEL_PROMPT_MISMATCH`); absent if it has none. */
  readonly key?: string;
  /** The number of the call of this model, from 1 (`MODEL_PROMPT_MISMATCH`). */
  readonly call?: number;
  /**
   * The parts of the call that differ: `method`, `messages`, `tools`, `toolChoice`, `responseFormat` (`MODEL_PROMPT_MISMATCH`).
   */
  readonly differences?: readonly string[];
  /** The number of the step, from 1; 0 before the first step (`FINISHED_STEP_CHANGED`). */
  readonly step?: number;
  /** The type of the part that differs or is missing: `text`, `tool-search`, ... (`FINISHED_STEP_CHANGED`). */
  readonly partType?: string;

  /** @hidden */
  constructor(
    readonly code: (typeof AnswerError.codes)[number],
    message: string,
    { logged, details }: AnswerErrorOptions,
  ) {
    super(message);
    Object.assign(this, details);
    Object.defineProperty(this, 'forLog', { value: logged });
  }
}

/**
 * @param step the number of the step, from 1; 0 before the first step
 * @param partType the type of the part that differs or is missing
 */
export function finishedStepChanged(step: number, partType: string): AnswerError {
  return new AnswerError('FINISHED_STEP_CHANGED', chatMessages.finishedStepChanged(step, partType), {
    logged: `step ${step} differs from what an earlier attempt has shown, in a part of type ${partType}.`,
    details: { step, partType },
  });
}

/**
 * Two handlers of a turn write an answer for the chat at the same time, for example two intents of a route. A client
 * cannot show them as one message.
 */
export function parallelAnswers(): HandlerError {
  return new HandlerError('PARALLEL_ANSWERS', chatMessages.parallelAnswers());
}

/**
 * A scripted model was called after its last answer.
 * @param scripted the number of answers in the script; `null` if the script is a function, which has returned none
 */
export function modelScriptOver(scripted: number | null, said: string): HandlerError {
  return new HandlerError('MODEL_SCRIPT_OVER', chatMessages.modelScriptOver(scripted, said));
}
