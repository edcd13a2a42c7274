import { SessionsConfigurationError } from 'nestjs-agent-sessions';
import {
  primaryKey,
  STORE_TABLES,
  type TableDatabase,
  type TableName,
  type TableRow,
  type TableTransaction,
} from 'nestjs-agent-sessions/adapter';
import { type FileLock } from './file-lock.js';
import { type Journal } from './journal.js';
import { Table } from './table.js';

/** A changed row in a line of the file. `row` is null if the row was deleted. */
type Change = readonly [table: TableName, id: string, row: TableRow | null];

/**
 * Tables in memory, loaded from a file. A transaction is one synchronous function, so transactions never overlap. Its changes become one
 * line of the file. They are undone if it throws or the file cannot be written.
 */
export class JsonFileTables implements TableDatabase {
  private readonly tables: Readonly<Record<string, Table>>;
  /** The previous rows of the running transaction: undefined for a new row. */
  private readonly before = new Map<string, { table: TableName; id: string; row: TableRow | undefined }>();
  private writing = false;

  constructor(
    private readonly journal: Journal,
    private readonly lock: FileLock,
    private readonly clock: () => number,
  ) {
    const names = Object.keys(STORE_TABLES) as TableName[];
    this.tables = Object.fromEntries(names.map((name) => [name, new Table(name)]));
  }

  async read<T>(work: (tx: TableTransaction) => T): Promise<T> {
    return work(this.transaction());
  }

  async write<T>(work: (tx: TableTransaction) => T): Promise<T> {
    this.startWriting();
    try {
      const result = work(this.transaction());
      if (this.before.size > 0) this.journal.append(JSON.stringify(this.changes()));
      return result;
    } catch (error) {
      for (const { table, id, row } of this.before.values()) this.tables[table].set(id, row);
      throw error;
    } finally {
      this.before.clear();
    }
  }

  /** Loads the tables from the file. */
  load(): void {
    for (const table of Object.values(this.tables)) table.clear();
    this.journal.read().forEach((line, index) => {
      try {
        for (const [table, id, row] of JSON.parse(line) as Change[]) this.tables[table].set(id, row ?? undefined);
      } catch (cause) {
        throw new SessionsConfigurationError(`Line ${index + 1} of the file is damaged.`, { cause });
      }
    });
  }

  /**
   * Takes the lock, reads what another process wrote since `load`, and rewrites the file with one line per row.
   * @throws SessionsConfigurationError if another process holds the lock
   */
  startWriting(): void {
    if (this.writing) return;
    this.lock.take();
    this.load();
    const rows = Object.entries(this.tables).flatMap(([name, table]) => [...table.all()].map((row) => [name, ...row]));
    this.journal.rewrite(rows.map((change) => JSON.stringify([change])));
    this.writing = true;
  }

  close(): void {
    this.journal.close();
    this.lock.release();
  }

  private transaction(): TableTransaction {
    return {
      now: Math.floor(this.clock()),
      get: (table, key) => this.tables[table].get(JSON.stringify(key)),
      put: (table, row) => this.change(table, JSON.stringify(primaryKey(table, row)), row),
      delete: (table, key) => this.change(table, JSON.stringify(key), undefined),
      scan: (table, range) => this.tables[table].scan(range),
    };
  }

  private change(table: TableName, id: string, row: TableRow | undefined): void {
    const place = `${table} ${id}`;
    if (!this.before.has(place)) this.before.set(place, { table, id, row: this.tables[table].get(id) });
    this.tables[table].set(id, row);
  }

  private changes(): Change[] {
    return [...this.before.values()].map(({ table, id }) => [table, id, this.tables[table].get(id) ?? null]);
  }
}
