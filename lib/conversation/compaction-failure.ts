import { type Backoff, backoffMs } from '../common/backoff.js';
import { onAbort } from '../common/on-abort.js';
import { toErrorRecord } from '../ledger/turn-error-record.js';
import { type CompactionPhase } from './compaction.errors.js';
import { type CompactionInfo } from './compaction-policy.js';
import { type CompactionFailure } from './conversation-head.js';

/** The delay after a failure: ten seconds, doubled after each further failure, at most an hour. */
const BACKOFF: Backoff = { type: 'exponential', delayMs: 10_000, maxDelayMs: 3_600_000 };

/** An error with the phase in which it occurred. */
export class PhaseError extends Error {
  constructor(
    readonly phase: CompactionPhase,
    override readonly cause: unknown,
  ) {
    super(phase);
  }
}

/** Runs a phase, and adds the phase to its error. */
export async function during<T>(phase: CompactionPhase, work: () => Promise<T> | T): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new PhaseError(phase, error);
  }
}

/**
 * Calls a function of the application, and stops waiting when the signal is aborted or the limit is reached. Otherwise
 * a call that hangs would hold the session forever.
 */
export function limited<T>(
  what: string,
  timeoutMs: number,
  info: CompactionInfo,
  work: (info: CompactionInfo) => Promise<T> | T,
): Promise<T> {
  const late = new AbortController();
  const signal = AbortSignal.any([info.signal, late.signal]);
  const timer = setTimeout(() => late.abort(new Error(`${what} took longer than ${timeoutMs} ms.`)), timeoutMs);
  let stopWaiting = (): void => undefined;
  const result = new Promise<T>((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    stopWaiting = onAbort(signal, () => reject(signal.reason as Error));
    (async () => work({ ...info, signal }))().then(resolve, reject);
  });
  return result.finally(() => {
    clearTimeout(timer);
    // A combined signal stays in memory while it has listeners.
    stopWaiting();
  });
}

/**
 * @param count the number of consecutive failures
 * @param now by the store's clock
 */
export function toFailure(
  phase: CompactionPhase,
  error: unknown,
  count: number,
  now: number,
  backoff: Backoff = BACKOFF,
): CompactionFailure {
  const retryAt = new Date(now + backoffMs(backoff, count)).toISOString();
  return { phase, message: readable(toErrorRecord(error).message), count, retryAt };
}

/** Returns the text in a form that every store preserves. */
function readable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cs}]/gu, ' ');
}
