import { SessionsConfigurationError } from 'nestjs-agent-sessions';
import { type FileLock } from './file-lock.js';
import { type Journal } from './journal.js';
import { Table } from './table.js';
import { Tables } from './tables.js';

/** `row` is null when it went. */
type Change = readonly [table: string, id: readonly (string | number)[], row: unknown];

/**
 * The tables in memory, and the file that they are made from. An operation is one synchronous function: no other one runs
 * meanwhile. What it changed becomes one line of the file, or is undone when it or the file fails.
 */
export class Store extends Tables {
  /** Of the operation that runs, in whole milliseconds since 1970. */
  now = 0;
  private readonly tables = tablesOf(this);
  private readonly listeners = new Set<(turnId: string) => void>();
  private hinted = new Set<string>();
  private writing = false;
  private lastVersion = 0;

  constructor(
    private readonly journal: Journal,
    private readonly lock: FileLock,
    private readonly clock: () => number,
  ) {
    super();
  }

  /** The time of the operation, or a later one, as it is stored. */
  time(laterMs = 0): string {
    return new Date(this.now + laterMs).toISOString();
  }

  /**
   * The version after `before` of a document. After 0 it is higher than any version that was given out, so a document that is deleted
   * and created again never has a version that it had before.
   */
  nextVersion(before: number): number {
    const version = before > 0 ? before + 1 : Math.max(this.lastVersion + 1, this.now * 1000);
    this.lastVersion = Math.max(this.lastVersion, version);
    return version;
  }

  /** Says after the commit that the turn changed. */
  hint(turnId: string): void {
    this.hinted.add(turnId);
  }

  subscribe(listener: (turnId: string) => void): () => void {
    const own = (turnId: string) => listener(turnId);
    this.listeners.add(own);
    return () => this.listeners.delete(own);
  }

  async read<T>(work: () => T): Promise<T> {
    this.now = Math.floor(this.clock());
    return work();
  }

  async commit<T>(work: () => T): Promise<T> {
    this.startWriting();
    this.now = Math.floor(this.clock());
    this.hinted = new Set();
    try {
      const result = work();
      const changes = this.describe((table) => table.changes());
      if (changes.length) this.journal.append(`[${changes.join(',')}]`);
      for (const table of this.tables.values()) table.keepChanges();
      this.tell(this.hinted);
      return result;
    } catch (error) {
      for (const table of this.tables.values()) table.undoChanges();
      throw error;
    }
  }

  /** Makes the tables anew from the file. */
  load(): void {
    for (const table of this.tables.values()) for (const [id] of table.all()) table.load(id, undefined);
    this.journal.read().forEach((line, index) => {
      try {
        for (const [name, id, row] of JSON.parse(line) as Change[]) {
          this.tables.get(name)!.load(JSON.stringify(id), row === null ? undefined : JSON.stringify(row));
        }
      } catch (cause) {
        throw new SessionsConfigurationError(`Line ${index + 1} of the file is damaged.`, { cause });
      }
    });
  }

  /** Takes the lock and shortens the file to what it still says. What another process wrote since `load` is read, too. */
  startWriting(): void {
    if (this.writing) return;
    this.lock.take();
    this.load();
    this.journal.rewrite(this.describe((table) => table.all()).map((change) => `[${change}]`));
    this.writing = true;
  }

  close(): void {
    this.journal.close();
    this.lock.release();
  }

  /** As JSON text. */
  private describe(rowsOf: (table: Table<unknown>) => [id: string, text: string | undefined][]): string[] {
    return [...this.tables].flatMap(([name, table]) =>
      rowsOf(table).map(([id, text]) => `["${name}",${id},${text ?? 'null'}]`),
    );
  }

  private tell(turnIds: ReadonlySet<string>): void {
    for (const turnId of turnIds) {
      for (const listener of this.listeners) {
        try {
          listener(turnId);
        } catch {
          // The write is done; whoever missed the hint polls.
        }
      }
    }
  }
}

function tablesOf(tables: Tables): Map<string, Table<unknown>> {
  const entries: [string, unknown][] = Object.entries(tables);
  return new Map(entries.filter((entry): entry is [string, Table<unknown>] => entry[1] instanceof Table));
}
