import { addAdvice } from '../common/error-trace.js';
import { fieldOf } from '../common/thrown.js';
import { aiSdkMessages } from './ai-sdk.messages.js';

/** The marks of the AI SDK's errors. Their classes differ if several copies of the SDK are installed. */
const MISSING = ['AI_LoadAPIKeyError', 'AI_LoadSettingError'].map(markOf);
const FAILED_CALL = markOf('AI_APICallError');
const REFUSED: readonly unknown[] = [401, 403];

/**
 * Marks an error as permanent if it reports that the API key or a setting of the provider is missing, or that the provider refuses
 * the key (AIS-05). A retry would fail, too. The log says what to do.
 * @returns the same value
 */
export function withoutRetry(error: unknown): unknown {
  const advice = adviceOn(error);
  if (advice === undefined || !Object.isExtensible(error)) return error;
  addAdvice(error as object, advice);
  return Object.assign(error as object, { permanent: true });
}

function adviceOn(error: unknown): string | undefined {
  if (MISSING.some((mark) => fieldOf(error, mark) === true)) return aiSdkMessages.missingKeyCure();
  const [isFailedCall, status, isRetryable] = [FAILED_CALL, 'statusCode', 'isRetryable'].map((field) =>
    fieldOf(error, field),
  );
  if (isFailedCall !== true || !REFUSED.includes(status) || isRetryable !== false) return undefined;
  return aiSdkMessages.refusedKeyCure(String(status));
}

function markOf(name: string): symbol {
  return Symbol.for(`vercel.ai.error.${name}`);
}
