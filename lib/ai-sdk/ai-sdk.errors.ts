import { AnswerError } from '../chat/chat.errors.js';
import { HandlerError } from '../ledger/handler.error.js';

/**
 * A model call of an earlier attempt has an answer in the store, but this attempt asked something else (AIS-02).
 * @param call the number of the call of this model, from 1
 * @param differences the parts of the call that differ
 */
export function promptMismatch(key: string | undefined, call: number, differences: readonly string[]): AnswerError {
  return new AnswerError(
    'MODEL_PROMPT_MISMATCH',
    `Call ${call} of ${nameOf(key)} differs from the call whose answer an earlier attempt has stored, in: ` +
      `${differences.join(', ')}. A prompt must be the same in every attempt. Read times, random values and data that ` +
      'changes in a step before the call. Give loops that may run in another order their own keys: ' +
      "durableModel(turn, model, { key: 'search' }).",
    {
      logged: `a model call differs from the call whose answer is stored, in: ${differences.join(', ')}.`,
      details: { call, differences, ...(key === undefined ? {} : { key }) },
    },
  );
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

/** A streamed answer ended without its last part, so it is not stored. */
export function incompleteAnswer(): AnswerError {
  const message =
    'The answer of the model was cut off: its stream ended without a `finish` part. It is not stored, and the turn is ' +
    'retried. If this repeats, check the provider and the proxies before it.';
  return new AnswerError('INCOMPLETE_ANSWER', message, { logged: message });
}

function nameOf(key: string | undefined): string {
  return key === undefined ? 'a durable model without a key' : `the durable model with key ${JSON.stringify(key)}`;
}
