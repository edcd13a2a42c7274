import { type RowKey, primaryKey, type TableName, type TableRow, type TableTransaction } from './table-database.js';
import { type Table } from './tables.js';

/** Bounds of {@link IndexedTable.scan}. */
export interface Range {
  readonly after?: RowKey;
  readonly before?: RowKey;
  readonly reverse?: boolean;
  readonly limit?: number;
}

/** A table of a transaction. Finds rows by keys and by ranges of indexes. */
export class IndexedTable<Row extends object, Key> implements Table<Row, Key> {
  constructor(
    protected readonly tx: TableTransaction,
    private readonly name: TableName,
  ) {}

  get(key: Key): Row | undefined {
    return this.tx.get(this.name, this.valuesOf(key)) as Row | undefined;
  }

  insert(row: Row): void {
    this.put({ ...row });
  }

  update(key: Key, patch: Partial<Row>): void {
    const row = this.get(key);
    if (row) this.put({ ...row, ...patch });
  }

  delete(key: Key): void {
    this.tx.delete(this.name, this.valuesOf(key));
  }

  /** Deletes these rows. @returns the number of rows */
  deleteAll(rows: readonly (Row & Key)[]): number {
    for (const row of rows) this.delete(row);
    return rows.length;
  }

  /** Returns all rows with a prefix, in the order of the index. */
  all(index: string, prefix: RowKey): (Row & Key)[] {
    return [...this.scan(index, prefix)];
  }

  /** @param row a new object, which is stored without copying it */
  protected put(row: Row): void {
    this.tx.put(this.name, row as unknown as TableRow);
  }

  protected scan(index: string, prefix: RowKey, range: Range = {}): Iterable<Row & Key> {
    const { after, before, reverse, limit } = range;
    return this.tx.scan(this.name, { index, prefix, after, before, reverse, limit }) as Iterable<Row & Key>;
  }

  protected first(index: string, prefix: RowKey, range: Range = {}): Row | undefined {
    const { after, before, reverse } = range;
    for (const row of this.scan(index, prefix, { after, before, reverse, limit: 1 })) return row;
    return undefined;
  }

  /** Yields the distinct values of the column after a prefix. Reads one row per value. */
  protected *distinct(index: string, prefix: RowKey, column: keyof Row, range: Range = {}): Generator<string> {
    for (let { after } = range; ;) {
      const row = this.first(index, prefix, { ...range, after });
      if (!row) return;
      const value = row[column] as string;
      yield value;
      after = [value];
    }
  }

  private valuesOf(key: Key): RowKey {
    return typeof key === 'string' ? [key] : primaryKey(this.name, key as unknown as TableRow);
  }
}

/** Returns the first `limit` values, and ends the iteration. */
export function take<T>(values: Iterable<T>, limit: number): T[] {
  const taken: T[] = [];
  if (limit <= 0) return taken;
  for (const value of values) {
    taken.push(value);
    if (taken.length >= limit) break;
  }
  return taken;
}
