import {
  type KeyRange,
  primaryKey,
  type RowKey,
  STORE_TABLES,
  type TableDatabase,
  type TableName,
  type TableRow,
  type TableTransaction,
} from '../core/table-database.js';
import { MemoryIndex } from './memory-index.js';

/** Tables in the memory of the process. A transaction that throws is undone. */
export class MemoryTables implements TableDatabase {
  private readonly tables = Object.fromEntries(
    Object.keys(STORE_TABLES).map((name) => [name, new MemoryTable(name as TableName)]),
  ) as Readonly<Record<TableName, MemoryTable>>;
  private readonly undo: Change[] = [];

  /** @param clock milliseconds since 1970; read once per transaction */
  constructor(private readonly clock: () => number) {}

  async write<T>(work: (tx: TableTransaction) => T): Promise<T> {
    try {
      return work(this.transaction());
    } catch (error) {
      for (let change = this.undo.pop(); change; change = this.undo.pop()) {
        change.table.replace(change.key, change.after, change.before);
      }
      throw error;
    } finally {
      this.undo.length = 0;
    }
  }

  read<T>(work: (tx: TableTransaction) => T): Promise<T> {
    return this.write(work);
  }

  private transaction(): TableTransaction {
    const { tables } = this;
    return {
      now: Math.floor(this.clock()),
      get: (name, key) => tables[name].get(key),
      put: (name, row) => this.change(tables[name], primaryKey(name, row), row),
      delete: (name, key) => this.change(tables[name], key, undefined),
      scan: (name, range) => tables[name].scan(range),
    };
  }

  private change(table: MemoryTable, key: RowKey, after: TableRow | undefined): void {
    const before = table.get(key);
    table.replace(key, before, after);
    this.undo.push({ table, key, before, after });
  }
}

interface Change {
  readonly table: MemoryTable;
  readonly key: RowKey;
  readonly before: TableRow | undefined;
  readonly after: TableRow | undefined;
}

/** Rows in the order of each index, and by primary key. Rows are never changed in place, so reading one does not copy it. */
class MemoryTable {
  private readonly indexes = new Map<string, MemoryIndex>();
  private readonly primary: MemoryIndex | undefined;
  /** Rows by their id, in a table whose primary key is one column and has no index. */
  private readonly rows = new Map<string, TableRow>();

  constructor(name: TableName) {
    for (const [index, columns] of Object.entries(STORE_TABLES[name].indexes)) {
      this.indexes.set(index, new MemoryIndex(columns));
    }
    this.primary = this.indexes.get('primary');
  }

  get(key: RowKey): TableRow | undefined {
    return this.primary ? this.primary.get(key) : this.rows.get(key[0] as string);
  }

  scan(range: KeyRange): Iterable<TableRow> {
    return (this.indexes.get(range.index) as MemoryIndex).scan(range);
  }

  replace(key: RowKey, before: TableRow | undefined, after: TableRow | undefined): void {
    if (!this.primary) {
      if (after) this.rows.set(key[0] as string, after);
      else this.rows.delete(key[0] as string);
    }
    for (const index of this.indexes.values()) index.change(before, after);
  }
}
