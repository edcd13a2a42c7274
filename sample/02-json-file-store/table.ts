import {
  compareKeys,
  indexKeys,
  type KeyRange,
  type RowKey,
  STORE_TABLES,
  type TableName,
  type TableRow,
} from 'nestjs-agent-sessions/adapter';

interface Entry {
  readonly key: RowKey;
  readonly row: TableRow;
}

/** The rows of one table by primary key, and a sorted array for each index. */
export class Table {
  private readonly rows = new Map<string, TableRow>();
  private readonly indexes = new Map<string, Entry[]>();

  constructor(private readonly name: TableName) {
    for (const index of Object.keys(STORE_TABLES[name].indexes)) this.indexes.set(index, []);
  }

  /** @param id the primary key as JSON */
  get(id: string): TableRow | undefined {
    return this.rows.get(id);
  }

  /** Replaces the row with this primary key, or deletes it if `row` is undefined. */
  set(id: string, row: TableRow | undefined): void {
    const before = this.rows.get(id);
    if (before) {
      this.rows.delete(id);
      for (const [index, key] of indexKeys(this.name, before)) this.entries(index).splice(this.from(index, key), 1);
    }
    if (row) {
      this.rows.set(id, row);
      for (const [index, key] of indexKeys(this.name, row)) {
        this.entries(index).splice(this.from(index, key), 0, { key, row });
      }
    }
  }

  *scan({ index, prefix, after, before, reverse, limit = Infinity }: KeyRange): Generator<TableRow> {
    const entries = this.entries(index);
    const start = after ? this.behind(index, [...prefix, ...after]) : this.from(index, prefix);
    const end = before ? this.from(index, [...prefix, ...before]) : this.behind(index, prefix);
    for (let count = 0; count < Math.min(limit, end - start); count += 1) {
      yield entries[reverse ? end - 1 - count : start + count].row;
    }
  }

  all(): Iterable<[id: string, row: TableRow]> {
    return this.rows;
  }

  clear(): void {
    this.rows.clear();
    for (const index of this.indexes.keys()) this.indexes.set(index, []);
  }

  private entries(index: string): Entry[] {
    return this.indexes.get(index)!;
  }

  /** Returns the position of the first entry that is not before the key. */
  private from(index: string, key: RowKey): number {
    return bisect(this.entries(index), (entry) => compareKeys(entry.key, key) < 0);
  }

  /** Returns the position of the first entry that is after the key and does not begin with it. */
  private behind(index: string, key: RowKey): number {
    return bisect(this.entries(index), (entry) => compareKeys(entry.key, key) <= 0);
  }
}

function bisect(entries: readonly Entry[], isBefore: (entry: Entry) => boolean): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(entries[middle])) low = middle + 1;
    else high = middle;
  }
  return low;
}
