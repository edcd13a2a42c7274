import {
  appendFileSync,
  closeSync,
  existsSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { StoreUnavailableError } from 'nestjs-agent-sessions';

/**
 * A file in which each line is one commit. A line counts when its line feed is written, so a commit is atomic even if the process is
 * killed. Commits are not synced to disk: a power failure can lose the last ones.
 */
export class Journal {
  private descriptor: number | undefined;
  private size = 0;
  /** True while a line may be incomplete. */
  private torn = false;

  constructor(private readonly file: string) {}

  read(): string[] {
    return this.guarded('read', () => {
      const text = existsSync(this.file) ? readFileSync(this.file, 'utf8') : '';
      return text.split('\n').slice(0, -1);
    });
  }

  /** Replaces all lines by these, which also removes an incomplete line. Later lines are appended. */
  rewrite(lines: readonly string[]): void {
    this.guarded('rewritten', () => {
      const fresh = `${this.file}.new`;
      rmSync(fresh, { force: true });
      this.descriptor = openSync(fresh, 'a');
      this.write(lines);
      fsyncSync(this.descriptor);
      renameSync(fresh, this.file);
    });
  }

  append(line: string): void {
    this.guarded('written', () => {
      if (this.torn) ftruncateSync(this.descriptor!, this.size);
      this.torn = true;
      this.write([line]);
      this.torn = false;
    });
  }

  close(): void {
    if (this.descriptor !== undefined) closeSync(this.descriptor);
    this.descriptor = undefined;
  }

  private write(lines: readonly string[]): void {
    const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
    appendFileSync(this.descriptor!, bytes);
    this.size += bytes.length;
  }

  private guarded<T>(done: string, work: () => T): T {
    try {
      return work();
    } catch (cause) {
      throw new StoreUnavailableError(`${this.file} could not be ${done}.`, { cause });
    }
  }
}
