/** The delays between attempts. */
export interface Backoff {
  readonly type: 'fixed' | 'exponential';
  /** The delay after the first failure, in milliseconds. */
  readonly delayMs: number;
  /** The maximum delay of `exponential`, in milliseconds. */
  readonly maxDelayMs: number;
}

/** Returns the longest possible delay in milliseconds. */
export function longestBackoffMs({ type, delayMs, maxDelayMs }: Backoff): number {
  return type === 'fixed' ? delayMs : maxDelayMs;
}

/**
 * Returns the delay before the next attempt in milliseconds. Exponential delays double with each failure up to
 * `maxDelayMs`. They are random within their upper half, so that attempts that failed together are not retried
 * together.
 * @param failures the number of failures so far, at least 1
 */
export function backoffMs({ type, delayMs, maxDelayMs }: Backoff, failures: number): number {
  if (type === 'fixed') return delayMs;
  const full = Math.min(delayMs * 2 ** (failures - 1), maxDelayMs);
  return Math.round(full * (0.5 + Math.random() / 2));
}
