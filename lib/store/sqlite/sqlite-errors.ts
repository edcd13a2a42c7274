import { setTimeout as delay } from 'node:timers/promises';
import { SessionsError } from '../../common/sessions.error.js';
import { type FailureKind, kinds, storeError } from '../core/store-failure.js';

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

/** How result codes of SQLite are handled (FIX-61), by their primary code. */
const KINDS: Readonly<Record<string, FailureKind>> = {
  ...kinds('outage', 'BUSY', 'LOCKED', 'NOMEM', 'INTERRUPT', 'IOERR', 'FULL', 'PROTOCOL', 'SCHEMA', 'ABORT'),
  ...kinds('value', 'CONSTRAINT', 'MISMATCH', 'TOOBIG', 'RANGE'),
  // SQLITE_ERROR is a missing table or column, because the statements never change.
  ...kinds('deployment', 'ERROR', 'AUTH', 'PERM', 'READONLY', 'CANTOPEN', 'NOTADB', 'CORRUPT'),
};

const CURES: Readonly<Record<string, string>> = {
  READONLY: 'Let this process write the file and its folder.',
  CANTOPEN: 'Let this process write the file and its folder.',
  CORRUPT: 'Restore the file from a backup.',
  NOTADB: 'Restore the file from a backup.',
};

/** The driver rejects larger values itself. */
const TOO_BIG = 'The bound string, buffer, or bigint is too big';

/** Returns typed errors unchanged, and converts SQLite's errors to the typed error for their kind. */
export function asStoreError(error: unknown): unknown {
  if (error instanceof SessionsError) return error;
  // Checks the name, because an error from another realm is not an instance of this realm's Error.
  const { name, message, code: given } = error as { name?: unknown; message?: unknown; code?: unknown };
  const isTooBig = name === 'RangeError' && message === TOO_BIG;
  const isClosed = name === 'TypeError' && String(message).includes('database connection');
  if (name !== 'SqliteError' && !isTooBig && !isClosed) return error;
  const code = isTooBig ? 'SQLITE_TOOBIG' : typeof given === 'string' ? given : '';
  const primary = code.split('_', 2)[1] ?? '';
  const kind = code === '' ? 'outage' : (KINDS[primary] ?? 'unknown');
  // These messages contain only names of tables. Messages about values may contain the value.
  const names = kind === 'deployment' ? `: ${String(message)}` : '';
  return storeError({
    store: 'SQLite',
    kind,
    detail: code === '' ? '' : ` (${code})${names}`,
    cure: CURES[primary],
    cause: error,
    // After an I/O error, the data on disk is unknown until the file is reopened. Other errors occur before any write.
    maybeApplied: code.startsWith('SQLITE_IOERR'),
  });
}

export function isBusy(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && code.startsWith('SQLITE_BUSY');
}
