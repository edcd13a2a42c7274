import { type Key, SortedIndex } from './sorted-index.js';

interface StoredRow {
  readonly text: string;
  readonly entries: readonly { readonly index: SortedIndex; readonly key: Key }[];
}

/**
 * Rows by id, and in the orders that the indexes name. Rows are kept as JSON text: what goes out shares nothing with what
 * came in, and the text is what the file gets. Remembers what the present commit changed, to write it or to undo it.
 */
export class Table<Row, IndexName extends string = never> {
  private readonly rows = new Map<string, StoredRow>();
  private readonly indexes = new Map<string, SortedIndex>();
  private readonly before = new Map<string, string | undefined>();

  /** @param keysOf the keys of a row in each index: none, one or several */
  constructor(
    private readonly idOf: (row: Row) => Key,
    private readonly keysOf: Record<IndexName, (row: Row) => readonly Key[]>,
  ) {
    for (const name of Object.keys(keysOf)) this.indexes.set(name, new SortedIndex());
  }

  get(...id: Key): Row | undefined {
    return this.parse(JSON.stringify(id));
  }

  *by(index: IndexName, prefix: Key, from?: Key): Generator<Row> {
    for (const id of this.index(index).startingWith(prefix, from)) yield this.parse(id)!;
  }

  first(index: IndexName, prefix: Key, from?: Key): Row | undefined {
    for (const row of this.by(index, prefix, from)) return row;
    return undefined;
  }

  last(index: IndexName, prefix: Key): Row | undefined {
    const id = this.index(index).last(prefix);
    return id === undefined ? undefined : this.parse(id);
  }

  /** @returns the row as it is stored */
  put(row: Row): Row {
    const id = JSON.stringify(this.idOf(row));
    this.change(id, JSON.stringify(row));
    return this.parse(id)!;
  }

  delete(row: Row): void {
    this.change(JSON.stringify(this.idOf(row)), undefined);
  }

  /** Takes a row as the file has it. Id and row are JSON text. */
  load(id: string, text: string | undefined): void {
    for (const { index, key } of this.rows.get(id)?.entries ?? []) index.remove(key);
    this.rows.delete(id);
    if (text === undefined) return;
    const row = JSON.parse(text) as Row;
    const entries = (Object.keys(this.keysOf) as IndexName[]).flatMap((name) =>
      this.keysOf[name](row).map((key) => ({ index: this.index(name), key })),
    );
    for (const { index, key } of entries) index.add(key, id);
    this.rows.set(id, { text, entries });
  }

  all(): [id: string, text: string][] {
    return [...this.rows].map(([id, { text }]) => [id, text]);
  }

  changes(): [id: string, text: string | undefined][] {
    return [...this.before.keys()].map((id) => [id, this.rows.get(id)?.text]);
  }

  keepChanges(): void {
    this.before.clear();
  }

  undoChanges(): void {
    for (const [id, text] of this.before) this.load(id, text);
    this.before.clear();
  }

  private change(id: string, text: string | undefined): void {
    const stored = this.rows.get(id)?.text;
    if (text === stored) return;
    if (!this.before.has(id)) this.before.set(id, stored);
    this.load(id, text);
  }

  private parse(id: string): Row | undefined {
    const row = this.rows.get(id);
    return row && (JSON.parse(row.text) as Row);
  }

  private index(name: IndexName): SortedIndex {
    return this.indexes.get(name)!;
  }
}
