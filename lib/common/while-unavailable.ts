import { setTimeout as delay } from 'node:timers/promises';
import { StoreUnavailableError } from './sessions.error.js';

/** The pause before a call is repeated while the store is unavailable. */
const RETRY_MS = 500;

/**
 * Repeats an operation while the store is unavailable (AIS-15). @throws StoreUnavailableError once the signal is
 * aborted; what the operation throws
 */
export async function repeatWhileUnavailable<T>(operation: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await operation();
    } catch (error) {
      if (!StoreUnavailableError.isInstance(error) || signal.aborted) throw error;
      await pause(signal);
    }
  }
}

/** Waits before the next attempt, or until the signal is aborted. */
export async function pause(signal: AbortSignal): Promise<void> {
  await delay(RETRY_MS, undefined, { signal }).catch(() => undefined);
}
