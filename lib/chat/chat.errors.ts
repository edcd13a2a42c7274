import { SessionsError } from '../common/sessions.error.js';

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
