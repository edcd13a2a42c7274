import { SessionsError } from '../common/sessions.error.js';
import { HandlerError } from '../ledger/handler.error.js';

/**
 * A model call of an earlier attempt has an answer in the store, but this attempt asked something else (AIS-02). The
 * answer is not used, and the model is not asked. The turn is retried within its limit, because another attempt may ask
 * the same again: for example, on a worker with the previous version of a prompt. HTTP 500.
 */
export class ModelPromptMismatchError extends SessionsError {
  readonly code = 'MODEL_PROMPT_MISMATCH';
  /** The key of the model; absent if it has none. */
  readonly key?: string;

  /**
   * @param call the number of the call of this model, from 1
   * @param differences the parts of the call that differ: `method`, `messages`, `tools`, `toolChoice`, `responseFormat`
   */
  constructor(
    key: string | undefined,
    readonly call: number,
    readonly differences: readonly string[],
  ) {
    super(
      `Call ${call} of ${nameOf(key)} differs from the call whose answer an earlier attempt has stored, in: ` +
        `${differences.join(', ')}. A prompt must be the same in every attempt. Read times, random values and data that ` +
        'changes in a step before the call. Give loops that may run in another order their own keys: ' +
        "durableModel(turn, model, { key: 'search' }).",
    );
    if (key !== undefined) this.key = key;
  }

  /** @internal */
  override get forLog(): string {
    return `a model call differs from the call whose answer is stored, in: ${this.differences.join(', ')}.`;
  }
}

/**
 * Model calls without a key, or with the same key, ran in parallel. A later attempt could not tell their answers apart
 * (AIS-04).
 */
export function modelKeyRequired(key: string | undefined, options: ErrorOptions): HandlerError {
  return new HandlerError(
    'MODEL_KEY_REQUIRED',
    `Calls of ${nameOf(key)} run in parallel: after a retry, an answer could reach another call. Give each loop its ` +
      'own key, which is the same in every attempt: durableModel(turn, model, { key: topic.id }), or ' +
      'durableCalls(turn, { key: topic.id }).',
    { ...options, ...(key === undefined ? {} : { details: { key } }) },
  );
}

/** A streamed answer ended without its last part, so it is not stored. The turn is retried within its limit. HTTP 500. */
export class IncompleteAnswerError extends SessionsError {
  readonly code = 'INCOMPLETE_ANSWER';

  constructor() {
    super('The answer of the model was cut off: its stream ended without a `finish` part. It is not stored.');
  }

  /** @internal */
  override get forLog(): string {
    return this.message;
  }
}

function nameOf(key: string | undefined): string {
  return key === undefined ? 'a durable model without a key' : `the durable model with key ${JSON.stringify(key)}`;
}
