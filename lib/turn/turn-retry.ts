import { type RetrySettings } from './turn.settings.js';

/** Errors marked `permanent` are not tried again (TRN-08). */
export function isPermanent(error: unknown): boolean {
  return typeof error === 'object' && error !== null && (error as { permanent?: unknown }).permanent === true;
}

/** Milliseconds: no pause between two attempts is longer. */
export function longestBackoffMs({ backoff: { type, delayMs, maxDelayMs } }: Pick<RetrySettings, 'backoff'>): number {
  return type === 'fixed' ? delayMs : maxDelayMs;
}

/**
 * Milliseconds before the next attempt. Exponential delays double with each failure up to `maxDelayMs` and are spread
 * over their upper half, so that what failed together does not come back together.
 * @param failures so far, at least 1
 */
export function backoffMs({ backoff }: Pick<RetrySettings, 'backoff'>, failures: number): number {
  const { type, delayMs, maxDelayMs } = backoff;
  if (type === 'fixed') return delayMs;
  const full = Math.min(delayMs * 2 ** (failures - 1), maxDelayMs);
  return Math.round(full * (0.5 + Math.random() / 2));
}
