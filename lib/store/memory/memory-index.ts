import { type KeyRange, type RowKey, type TableRow } from '../core/table-database.js';
import { type KeyBounds, SortedRows } from './sorted-rows.js';

/**
 * An index of a table in memory. It groups rows by the first column of the index when that is a string, because most ranges read the rows
 * of one session, turn or user: the group is found by hash and is small. Rows of an index that begins with a number share one group.
 */
export class MemoryIndex {
  private readonly groups = new Map<string, SortedRows>();
  private readonly names = new SortedRows(['name']);
  /** Groups created or deleted since `names` was updated. Only ranges over several groups need their order. */
  private readonly changedNames = new Set<string>();

  constructor(private readonly columns: readonly string[]) {}

  get(key: RowKey): TableRow | undefined {
    return this.groups.get(groupOf(key))?.get(key);
  }

  /** Replaces a row by another with the same primary key. Either may be missing. */
  change(before: TableRow | undefined, after: TableRow | undefined): void {
    if (before && after && this.hasSameKey(before, after)) {
      const key = this.keyOf(after);
      if (key) this.groups.get(groupOf(key))?.replace(key, after);
      return;
    }
    if (before) this.remove(before);
    if (after) this.add(after);
  }

  scan({ prefix, after, before, reverse = false, limit = Infinity }: KeyRange): Iterable<TableRow> {
    const bounds = {
      low: after ? prefix.concat(after) : prefix,
      isLowIncluded: !after,
      high: before ? prefix.concat(before) : prefix,
      isHighIncluded: !before,
    };
    if (prefix.length === 0) return this.scanGroups(bounds, reverse, limit);
    return this.groups.get(groupOf(prefix))?.scan(bounds, reverse, limit) ?? [];
  }

  private add(row: TableRow): void {
    const key = this.keyOf(row);
    if (!key) return;
    const name = groupOf(key);
    let group = this.groups.get(name);
    if (!group) {
      group = new SortedRows(this.columns, typeof key[0] === 'string' ? 1 : 0);
      this.groups.set(name, group);
      this.toggle(name);
    }
    group.add(key, row);
  }

  private remove(row: TableRow): void {
    const key = this.keyOf(row);
    if (!key) return;
    const name = groupOf(key);
    const group = this.groups.get(name) as SortedRows;
    group.remove(key);
    if (!group.isEmpty) return;
    this.groups.delete(name);
    this.toggle(name);
  }

  private *scanGroups(bounds: KeyBounds, reverse: boolean, limit: number): Generator<TableRow> {
    let rest = limit;
    for (const name of this.namesIn(bounds, reverse)) {
      for (const row of (this.groups.get(name) as SortedRows).scan(boundsIn(name, bounds), reverse, rest)) {
        yield row;
        rest -= 1;
      }
      if (rest <= 0) return;
    }
  }

  /** Yields the groups that may contain rows of a range, in the order of the range. */
  private *namesIn({ low, high }: KeyBounds, reverse: boolean): Generator<string> {
    for (const name of this.changedNames) {
      if (this.groups.has(name)) this.names.add([name], { name });
      else this.names.remove([name]);
    }
    this.changedNames.clear();
    const bounds = { low: firstName(low), isLowIncluded: true, high: firstName(high), isHighIncluded: true };
    for (const { name } of this.names.scan(bounds, reverse, Infinity)) yield name as string;
  }

  private toggle(name: string): void {
    if (!this.changedNames.delete(name)) this.changedNames.add(name);
  }

  private hasSameKey(a: TableRow, b: TableRow): boolean {
    for (const column of this.columns) if (a[column] !== b[column]) return false;
    return true;
  }

  /** Returns `undefined` for a row that is not in the index, because one of its columns is `null`. */
  private keyOf(row: TableRow): RowKey | undefined {
    const key: (string | number)[] = [];
    for (const column of this.columns) {
      const value = row[column];
      if (value === null) return undefined;
      key.push(value);
    }
    return key;
  }
}

function groupOf(key: RowKey): string {
  const first = key[0];
  return typeof first === 'string' ? first : '';
}

function firstName(bound: RowKey): RowKey {
  return typeof bound[0] === 'string' ? [bound[0]] : [];
}

/** Returns the part of a range that is in a group: all of the group, unless a bound has the name of the group. */
function boundsIn(name: string, { low, isLowIncluded, high, isHighIncluded }: KeyBounds): KeyBounds {
  const isFromStart = typeof low[0] === 'string' && low[0] !== name;
  const isToEnd = typeof high[0] === 'string' && high[0] !== name;
  return {
    low: isFromStart ? [] : low,
    isLowIncluded: isFromStart || isLowIncluded,
    high: isToEnd ? [] : high,
    isHighIncluded: isToEnd || isHighIncluded,
  };
}
