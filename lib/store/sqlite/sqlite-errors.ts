import { setTimeout as delay } from 'node:timers/promises';
import { SessionsError, StoreUnavailableError } from '../../common/sessions.error.js';

const BUSY_PAUSE_MS = 5;

/**
 * Tries again as long as another connection is in the way. Asynchronously: the event loop goes on meanwhile.
 * @throws what SQLite says after `timeoutMs`
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

/** Typed errors of the domain pass; what SQLite says becomes "the store is unavailable". */
export function asStoreError(error: unknown): unknown {
  if (error instanceof SessionsError) return error;
  // By name: an error of another realm is no instance of this one's Error.
  const { name, message, code: given } = error as { name?: unknown; message?: unknown; code?: unknown };
  const fromSqlite =
    name === 'SqliteError' || (name === 'TypeError' && String(message).includes('database connection'));
  if (!fromSqlite) return error;
  const code = typeof given === 'string' ? given : '';
  return new StoreUnavailableError(`The SQLite store failed${code === '' ? '' : ` (${code})`}.`, {
    cause: error,
    // What a disk that fails has kept shows when the file is next opened. All else is refused before anything is written.
    maybeApplied: code.startsWith('SQLITE_IOERR'),
  });
}

export function isBusy(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && code.startsWith('SQLITE_BUSY');
}
