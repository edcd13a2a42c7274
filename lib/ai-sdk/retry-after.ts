import { fieldOf } from '../common/thrown.js';

/** The maximum number of nested errors that are searched. */
const MAX_DEPTH = 5;

/**
 * Returns the pause that a provider asks for with the header `retry-after-ms` or `retry-after`, in milliseconds. Also
 * searches the errors inside a `RetryError` of the AI SDK and the causes of an error.
 * @returns `undefined` if no header asks for a pause
 */
export function retryAfterMsOf(error: unknown, depth = 0): number | undefined {
  if (typeof error !== 'object' || error === null || depth > MAX_DEPTH) return undefined;
  const [responseHeaders, lastError, cause] = ['responseHeaders', 'lastError', 'cause'].map((field) =>
    fieldOf(error, field),
  );
  return pauseOf(responseHeaders) ?? retryAfterMsOf(lastError, depth + 1) ?? retryAfterMsOf(cause, depth + 1);
}

/**
 * Adds the provider's pause to the error as `retryAfterMs`, with which a turn is retried no earlier (AIS-05).
 * @returns the same value
 */
export function withRetryAfter(error: unknown): unknown {
  const retryAfterMs = retryAfterMsOf(error);
  if (retryAfterMs === undefined || !Object.isExtensible(error)) return error;
  return Object.assign(error as object, { retryAfterMs });
}

/** The header `retry-after` has seconds or a date. */
function pauseOf(headers: unknown): number | undefined {
  const [ms, after] = ['retry-after-ms', 'retry-after'].map((name) => fieldOf(headers, name));
  const pauses = [parseFloat(String(ms)), 1000 * parseFloat(String(after)), Date.parse(String(after)) - Date.now()];
  const pause = pauses.find(Number.isFinite);
  return pause === undefined ? undefined : Math.max(0, pause);
}
