import { AnswerError } from '../chat/chat.errors.js';
import { HandlerError } from '../ledger/handler.error.js';
import { aiSdkMessages } from './ai-sdk.messages.js';

/**
 * A model call of an earlier attempt has an answer in the store, but this attempt asked something else (AIS-02).
 * @param call the number of the call of this model, from 1
 * @param differences the parts of the call that differ
 */
export function promptMismatch(key: string | undefined, call: number, differences: readonly string[]): AnswerError {
  return new AnswerError('MODEL_PROMPT_MISMATCH', aiSdkMessages.promptMismatch(nameOf(key), call, differences), {
    logged: `a model call differs from the call whose answer is stored, in: ${differences.join(', ')}.`,
    details: { call, differences, ...(key === undefined ? {} : { key }) },
  });
}

/**
 * Model calls without a key, or with the same key, ran in parallel. A later attempt could not tell their answers apart
 * (AIS-04).
 */
export function modelKeyRequired(key: string | undefined, options: ErrorOptions): HandlerError {
  return new HandlerError('MODEL_KEY_REQUIRED', aiSdkMessages.modelKeyRequired(nameOf(key)), {
    ...options,
    ...(key === undefined ? {} : { details: { key } }),
  });
}

/** A streamed answer ended without its last part, so it is not stored. */
export function incompleteAnswer(): AnswerError {
  const message = aiSdkMessages.incompleteAnswer();
  return new AnswerError('INCOMPLETE_ANSWER', message, { logged: message });
}

function nameOf(key: string | undefined): string {
  return key === undefined ? 'a durable model without a key' : `the durable model with key ${JSON.stringify(key)}`;
}
