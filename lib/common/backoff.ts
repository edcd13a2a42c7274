/** The pauses between attempts. */
export interface Backoff {
  readonly type: 'fixed' | 'exponential';
  /** The pause after the first failure. */
  readonly delayMs: number;
  /** The longest pause of `exponential`. */
  readonly maxDelayMs: number;
}

/** Milliseconds: no pause between two attempts is longer. */
export function longestBackoffMs({ type, delayMs, maxDelayMs }: Backoff): number {
  return type === 'fixed' ? delayMs : maxDelayMs;
}

/**
 * Milliseconds before the next attempt. Exponential delays double with each failure up to `maxDelayMs` and are spread
 * over their upper half, so that what failed together does not come back together.
 * @param failures so far, at least 1
 */
export function backoffMs({ type, delayMs, maxDelayMs }: Backoff, failures: number): number {
  if (type === 'fixed') return delayMs;
  const full = Math.min(delayMs * 2 ** (failures - 1), maxDelayMs);
  return Math.round(full * (0.5 + Math.random() / 2));
}
