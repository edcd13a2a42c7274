import { setTimeout as delay } from 'node:timers/promises';
import { SessionsError, StoreUnavailableError } from '../../common/sessions.error.js';

const BUSY_PAUSE_MS = 5;

/**
 * Retries while another connection holds a lock. Waits asynchronously, so the event loop is not blocked.
 * @throws SQLite's error after `timeoutMs`
 */
export async function retryWhileBusy<T>(work: () => T, timeoutMs: number): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || performance.now() >= deadline) throw error;
      await delay(BUSY_PAUSE_MS * (1 + Math.random()));
    }
  }
}

/** Returns typed errors unchanged, and converts SQLite's errors to `StoreUnavailableError`. */
export function asStoreError(error: unknown): unknown {
  if (error instanceof SessionsError) return error;
  // Checks the name, because an error from another realm is not an instance of this realm's Error.
  const { name, message, code: given } = error as { name?: unknown; message?: unknown; code?: unknown };
  const fromSqlite =
    name === 'SqliteError' || (name === 'TypeError' && String(message).includes('database connection'));
  if (!fromSqlite) return error;
  const code = typeof given === 'string' ? given : '';
  return new StoreUnavailableError(`The SQLite store failed${code === '' ? '' : ` (${code})`}.`, {
    cause: error,
    // After an I/O error, the data on disk is unknown until the file is reopened. Other errors occur before any write.
    maybeApplied: code.startsWith('SQLITE_IOERR'),
  });
}

export function isBusy(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && code.startsWith('SQLITE_BUSY');
}
