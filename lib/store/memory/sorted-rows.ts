import { compareValues, type RowKey, type TableRow } from '../core/table-database.js';

/** The part of the order from `low` to `high`, with or without the keys that begin with one of them. */
export interface KeyBounds {
  readonly low: RowKey;
  readonly isLowIncluded: boolean;
  readonly high: RowKey;
  readonly isHighIncluded: boolean;
}

interface Position {
  readonly chunk: number;
  readonly place: number;
}

/** The largest number of rows in a chunk, which an insertion moves. */
const MAX_CHUNK = 512;

/** Rows in the order of some of their columns, in chunks, so that the cost of an insertion does not grow with the number of rows. */
export class SortedRows {
  private readonly chunks: TableRow[][] = [[]];

  /** @param common how many of the first columns have the same values in all rows; they are not compared */
  constructor(
    private readonly columns: readonly string[],
    private readonly common = 0,
  ) {}

  get isEmpty(): boolean {
    return this.chunks[0].length === 0;
  }

  /** Returns the row with this key. */
  get(key: RowKey): TableRow | undefined {
    const { chunk, place } = this.find(key);
    const row = this.chunks[chunk][place] as TableRow | undefined;
    return row && this.compare(row, key) === 0 ? row : undefined;
  }

  add(key: RowKey, row: TableRow): void {
    const { chunk: at, place } = this.positionOf(key, false);
    const chunk = this.chunks[at];
    if (place === chunk.length) chunk.push(row);
    else chunk.splice(place, 0, row);
    if (chunk.length > MAX_CHUNK) this.chunks.splice(at + 1, 0, chunk.splice(MAX_CHUNK / 2));
  }

  /** Replaces the row with this key, which exists. */
  replace(key: RowKey, row: TableRow): void {
    const { chunk, place } = this.find(key);
    this.chunks[chunk][place] = row;
  }

  /** Removes the row with this key, which exists. */
  remove(key: RowKey): void {
    const { chunk, place } = this.find(key);
    this.chunks[chunk].splice(place, 1);
    if (this.chunks[chunk].length === 0 && this.chunks.length > 1) this.chunks.splice(chunk, 1);
  }

  /** Yields the rows of a range, at most `limit`. */
  *scan(bounds: KeyBounds, reverse: boolean, limit: number): Generator<TableRow> {
    const start = this.positionOf(bounds.low, !bounds.isLowIncluded);
    const end = this.positionOf(bounds.high, bounds.isHighIncluded);
    let rest = limit;
    for (let step = 0; step <= end.chunk - start.chunk; step += 1) {
      const at = reverse ? end.chunk - step : start.chunk + step;
      const chunk = this.chunks[at];
      const from = at === start.chunk ? start.place : 0;
      const to = at === end.chunk ? end.place : chunk.length;
      for (let place = from; place < to; place += 1) {
        if (rest <= 0) return;
        rest -= 1;
        yield chunk[reverse ? from + to - 1 - place : place];
      }
    }
  }

  /** Returns the position of the row with this key, if it exists. The last row is the one that most calls change or read. */
  private find(key: RowKey): Position {
    const chunk = this.chunks.length - 1;
    const place = this.chunks[chunk].length - 1;
    if (place >= 0 && this.compare(this.chunks[chunk][place], key) === 0) return { chunk, place };
    return this.positionOf(key, false);
  }

  /** Returns the position of the first row that is not before the key and, with `isPast`, does not begin with it either. */
  private positionOf(key: RowKey, isPast: boolean): Position {
    const { chunks } = this;
    let low = 0;
    let high = chunks.length - 1;
    // The last chunk that ends behind the position.
    while (low < high) {
      const middle = (low + high) >>> 1;
      const chunk = chunks[middle];
      if (this.isBefore(chunk[chunk.length - 1], key, isPast)) low = middle + 1;
      else high = middle;
    }
    return { chunk: low, place: this.placeIn(chunks[low], key, isPast) };
  }

  private placeIn(chunk: readonly TableRow[], key: RowKey, isPast: boolean): number {
    let low = 0;
    let high = chunk.length;
    // Most rows are added at the end, and most ranges end there.
    if (high > 0 && this.isBefore(chunk[high - 1], key, isPast)) return high;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.isBefore(chunk[middle], key, isPast)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private isBefore(row: TableRow, key: RowKey, isPast: boolean): boolean {
    const order = this.compare(row, key);
    return order < 0 || (isPast && order === 0);
  }

  private compare(row: TableRow, key: RowKey): number {
    const { columns } = this;
    for (let at = this.common; at < key.length; at += 1) {
      const order = compareValues(row[columns[at]] as string | number, key[at]);
      if (order !== 0) return order;
    }
    return 0;
  }
}
