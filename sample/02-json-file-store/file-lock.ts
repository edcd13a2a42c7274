import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { SessionsConfigurationError, StoreUnavailableError } from 'nestjs-agent-sessions';

/** Locks of this process. A lock file with our pid that is not in this set belongs to a dead process that had the same pid. */
const ours = new Set<string>();

/**
 * A file with the pid of the process that may write. Two processes that find the same stale lock at the same moment can both take it, and a
 * zombie process counts as alive. Where that can happen, use a lock of the operating system.
 */
export class FileLock {
  private held = false;

  constructor(private readonly file: string) {}

  /** @throws SessionsConfigurationError if another process holds the lock */
  take(): void {
    if (this.held) return;
    if (!this.create()) {
      const pid = Number(readFileSync(this.file, 'utf8'));
      if (pid === process.pid ? ours.has(this.file) : isAlive(pid)) {
        throw new SessionsConfigurationError(`Process ${pid} works on this store; it holds ${this.file}.`);
      }
      rmSync(this.file, { force: true });
      if (!this.create()) throw new SessionsConfigurationError(`Another process has just taken ${this.file}.`);
    }
    this.held = true;
    ours.add(this.file);
  }

  release(): void {
    if (!this.held) return;
    this.held = false;
    ours.delete(this.file);
    rmSync(this.file, { force: true });
  }

  private create(): boolean {
    try {
      writeFileSync(this.file, String(process.pid), { flag: 'wx' });
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
      throw new StoreUnavailableError(`${this.file} could not be written.`, { cause: error });
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
