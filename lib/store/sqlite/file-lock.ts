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

  constructor(
    private readonly open: OpenDatabase,
    private readonly file: string,
  ) {}

  /** @returns false if another process still holds the lock after `timeoutMs` */
  async acquire(timeoutMs: number): Promise<boolean> {
    const deadline = performance.now() + timeoutMs;
    while (!this.tryAcquire()) {
      if (performance.now() >= deadline) return false;
      await delay(RETRY_MS);
    }
    return true;
  }

  release(): void {
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
