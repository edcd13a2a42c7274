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
 * A file of lines, of which each is one commit. A line counts once its line feed is there, so a commit is whole or not
 * there at all, whenever the process is killed. Nothing is synced after a commit: a power cut can lose the last ones.
 */
export class Journal {
  private descriptor: number | undefined;
  private size = 0;
  /** A line was begun that may not be whole. */
  private torn = false;

  constructor(private readonly file: string) {}

  read(): string[] {
    return this.guarded('read', () => {
      const text = existsSync(this.file) ? readFileSync(this.file, 'utf8') : '';
      return text.split('\n').slice(0, -1);
    });
  }

  /** Puts these lines in the place of all others; a half-written one is gone then. What follows is appended. */
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
