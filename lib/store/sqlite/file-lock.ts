import { setTimeout as delay } from 'node:timers/promises';
import { type Database, type Options } from 'better-sqlite3';
import { isBusy } from './sqlite-errors.js';

export type OpenDatabase = (file: string, options?: Options) => Database;

const RETRY_MS = 50;

/**
 * A lock that only one process on this host can hold: an exclusive transaction that stays open on a separate small SQLite
 * file. The operating system releases it when the process ends, even after a crash, so it needs no lease.
 */
export class FileLock {
  private holding: Database | null = null;
  private released = false;

  constructor(
    private readonly open: OpenDatabase,
    private readonly file: string,
  ) {}

  /**
   * @param onWait called once if the lock is not free
   * @returns false if another holder still has the lock after `timeoutMs`, or after `release`
   */
  async acquire(timeoutMs: number, onWait: () => void = () => {}): Promise<boolean> {
    const deadline = performance.now() + timeoutMs;
    for (let attempt = 1; !this.released; attempt += 1) {
      if (this.tryAcquire()) return true;
      if (performance.now() >= deadline) return false;
      if (attempt === 1) onWait();
      await delay(RETRY_MS);
    }
    return false;
  }

  /** Releases the lock, and ends a wait for it. The lock is not used again. */
  release(): void {
    this.released = true;
    this.holding?.close();
    this.holding = null;
  }

  private tryAcquire(): boolean {
    if (this.holding) return true;
    const db = this.open(this.file, { timeout: 0 });
    try {
      db.exec('BEGIN EXCLUSIVE');
      this.holding = db;
      return true;
    } catch (error) {
      db.close();
      if (isBusy(error)) return false;
      throw error;
    }
  }
}
