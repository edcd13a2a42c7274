import { SessionsError } from '../common/sessions.error.js';
import { HandlerError } from '../ledger/handler.error.js';

/**
 * This attempt answers differently in a step that an earlier attempt has finished and shown (AIS-14). Clients can
 * replace the last step only, so the attempt fails. The turn is retried within its limit. HTTP 500.
 */
export class FinishedStepChangedError extends SessionsError {
  readonly code = 'FINISHED_STEP_CHANGED';

  /**
   * @param step the number of the step, from 1; 0 before the first step
   * @param partType the type of the part that differs or is missing: `text`, `tool-search`, ...
   */
  constructor(
    readonly step: number,
    readonly partType: string,
  ) {
    super(
      `Step ${step} of the answer differs from what an earlier attempt has shown, in a part of type ${partType}. ` +
        'A finished step must be the same in every attempt: wrap models and tools with durableModel and durableTools.',
    );
  }

  /** @internal */
  override get forLog(): string {
    return `step ${this.step} differs from what an earlier attempt has shown, in a part of type ${this.partType}.`;
  }
}

/**
 * Two handlers of a turn write an answer for the chat at the same time, for example two intents of a route. A client
 * cannot show them as one message.
 */
export function parallelAnswers(): HandlerError {
  return new HandlerError(
    'PARALLEL_ANSWERS',
    'Another intent of this turn already streams an answer, and a chat shows one answer of a turn. Call streamReply ' +
      'in one intent of a route only. The others can call generateText with a durableModel and return a reply.',
  );
}

/**
 * A scripted model was called after its last answer.
 * @param scripted the number of answers in the script; `null` if the script is a function, which has returned none
 */
export function modelScriptOver(scripted: number | null, said: string): HandlerError {
  const cause =
    scripted === null
      ? 'The script of the model has returned no answer'
      : `The script of the model has ${scripted === 1 ? '1 answer' : `${scripted} answers`}, and the model was called again`;
  return new HandlerError(
    'MODEL_SCRIPT_OVER',
    `${cause} after ${JSON.stringify(said)}. Add an answer to scriptedModel().`,
  );
}
