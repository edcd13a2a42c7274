import { type Table } from '../core/tables.js';

/** Undoes the changes of a transaction in reverse order. */
export class Journal {
  private readonly undo: (() => void)[] = [];

  record(undo: () => void): void {
    this.undo.push(undo);
  }

  rollBack(): void {
    while (this.undo.length > 0) this.undo.pop()?.();
  }

  clear(): void {
    this.undo.length = 0;
  }
}

/** Rows in a Map by primary key; subclasses keep their indexes in `added` and `removed`. */
export class MemoryTable<Row extends object, Key> implements Table<Row, Key> {
  protected readonly rows = new Map<string, Row>();

  constructor(
    private readonly journal: Journal,
    protected readonly keyOf: (key: Key | Row) => string,
  ) {}

  get(key: Key): Row | undefined {
    return this.rows.get(this.keyOf(key));
  }

  insert(row: Row): void {
    const key = this.keyOf(row);
    if (this.rows.has(key)) throw new Error(`There is a row with the key ${key} already.`);
    this.put(key, { ...row });
  }

  update(key: Key, patch: Partial<Row>): void {
    const row = this.get(key);
    if (row) this.put(this.keyOf(key), { ...row, ...patch });
  }

  delete(key: Key): void {
    this.remove(this.keyOf(key));
  }

  /** Rows are never changed in place, so they are returned without copying. */
  private put(key: string, row: Row): void {
    const before = this.rows.get(key);
    this.replace(key, before, row);
    this.journal.record(() => this.replace(key, row, before));
  }

  private remove(key: string): void {
    const before = this.rows.get(key);
    if (!before) return;
    this.replace(key, before, undefined);
    this.journal.record(() => this.replace(key, undefined, before));
  }

  private replace(key: string, before: Row | undefined, after: Row | undefined): void {
    if (before) this.removed(before);
    if (after) {
      this.rows.set(key, after);
      this.added(after);
    } else {
      this.rows.delete(key);
    }
  }

  protected added(_row: Row): void {}

  protected removed(_row: Row): void {}
}

/** Rows by a value that several of them share. */
export class SetIndex<Row> {
  private readonly groups = new Map<string, Set<Row>>();

  of(group: string): Row[] {
    return [...(this.groups.get(group) ?? [])];
  }

  add(group: string, row: Row): void {
    this.groups.set(group, (this.groups.get(group) ?? new Set()).add(row));
  }

  remove(group: string, row: Row): void {
    const rows = this.groups.get(group);
    rows?.delete(row);
    if (rows?.size === 0) this.groups.delete(group);
  }
}

/** Rows of one group in the order of a number: a lane's turns, a session's messages. */
export class GroupIndex<Row> {
  private readonly groups = new Map<string, Row[]>();

  constructor(private readonly order: (row: Row) => number) {}

  of(group: string): readonly Row[] {
    return this.groups.get(group) ?? [];
  }

  add(group: string, row: Row): void {
    const rows = this.groups.get(group);
    if (!rows) {
      this.groups.set(group, [row]);
      return;
    }
    rows.splice(this.from(rows, this.order(row)), 0, row);
  }

  remove(group: string, row: Row): void {
    const rows = this.groups.get(group) ?? [];
    const at = rows.indexOf(row, this.from(rows, this.order(row)));
    if (at !== -1) rows.splice(at, 1);
    if (rows.length === 0) this.groups.delete(group);
  }

  /** Rows whose number is `start` or more. */
  slice(group: string, start: number, limit: number): readonly Row[] {
    const rows = this.of(group);
    const at = this.from(rows, start);
    return rows.slice(at, at + limit);
  }

  /** Rows whose number is below `end`, the last one first. */
  sliceBefore(group: string, end: number, limit: number): readonly Row[] {
    const rows = this.of(group);
    const at = this.from(rows, end);
    return rows.slice(Math.max(0, at - limit), at).reverse();
  }

  /** Returns the first index whose number is `order` or more, by bisection. */
  private from(rows: readonly Row[], order: number): number {
    let low = 0;
    let high = rows.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.order(rows[middle]) < order) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Joins the parts of a key to one string. The parts are ids, names and numbers, without control characters. */
export const joined = (...parts: (string | number)[]): string => parts.join('\u0000');
