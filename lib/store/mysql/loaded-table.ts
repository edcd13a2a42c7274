import { type Table } from '../core/tables.js';
import { type MemoryTable } from './memory-table.js';
import { type Query, type Statement } from './statement.js';
import { type TableSql } from './table-sql.js';
import { fact, type Lock, type Need, type SessionTerm, type Unit } from './unit.js';

export interface TableChanges {
  readonly deletes: Statement[];
  readonly updates: Statement[];
  readonly inserts: Statement[];
}

export interface LoadedTableOptions<Key> {
  /** The lock that protects a row, which may not exist. */
  readonly lockOf?: (key: Key) => Lock | undefined;
  /** The row comes with the lock of its session. */
  readonly bundled?: boolean;
  /** The row is locked itself, because other transactions change it without the lock of its session, or it has no session. */
  readonly rowLock?: boolean;
}

/**
 * A table with the rows that the work requests in memory. Writes of the work are kept above the loaded rows: later reads see
 * them, and they are undone before the work runs again.
 */
export class LoadedTable<Row extends object, Key> implements Table<Row, Key> {
  private readonly before = new Map<string, Row | undefined>();
  private readonly keys = new Map<string, Key>();

  constructor(
    protected readonly unit: Unit,
    protected readonly sql: TableSql<Row>,
    protected readonly rows: MemoryTable<Row, Key>,
    private readonly options: LoadedTableOptions<Key> = {},
  ) {}

  get(key: Key): Row | undefined {
    const row = this.rows.get(key);
    if (row) return row;
    this.unit.recall(this.factOf(key), () => this.needOf(key));
    return undefined;
  }

  insert(row: Row): void {
    const key = this.keyOf(row);
    this.note(key);
    this.rows.insert(row);
  }

  update(key: Key, patch: Partial<Row>): void {
    if (!this.get(key)) return;
    this.note(key);
    this.rows.update(key, patch);
  }

  delete(key: Key): void {
    if (!this.get(key)) return;
    this.note(key);
    this.rows.delete(key);
  }

  /** Takes in rows of the database. */
  put(rows: readonly Row[]): void {
    for (const row of rows) {
      const key = this.keyOf(row);
      if (!this.rows.get(key)) this.rows.insert(row);
      this.unit.learn(this.factOf(key));
    }
  }

  /** Stores the loaded row of a key, or that it does not exist. */
  byKey(key: Key): Query {
    return {
      ...this.sql.byKey(key, this.options.rowLock ? this.unit.forUpdate : ''),
      take: ({ rows }) => this.learnRow(key, rows as unknown as Row[]),
    };
  }

  /** Works like byKey, where the key is the id of a session. */
  bySession(session: SessionTerm, lock: string, known: (row: Row | undefined) => void = () => {}): Query {
    return {
      ...this.sql.byTerm(session, lock),
      take: ({ rows }) => {
        known(rows[0] as Row | undefined);
        const id = session.id();
        if (id !== undefined) this.learnRow(id as Key, rows as unknown as Row[]);
      },
    };
  }

  /** Returns the column `name` of the rows that a statement finds. Runs it once. */
  protected namesIn(named: string, list: Statement): string[] {
    return this.unit.recall<string[]>(named, () => {
      const take: Query['take'] = ({ rows }) =>
        this.unit.learn(
          named,
          rows.map(({ name }) => name),
        );
      return { queries: [{ ...list, take }] };
    });
  }

  protected learnRow(key: Key, rows: readonly Row[]): void {
    this.put(rows);
    this.unit.learn(this.factOf(key));
  }

  /** Forgets what the work has changed. The rows themselves are undone by the journal. */
  reset(): void {
    this.before.clear();
    this.keys.clear();
  }

  /** Returns the statements that write the changed rows. */
  changes(): TableChanges {
    const changes = { deletes: [] as Statement[], updates: [] as Statement[], inserted: [] as Row[] };
    for (const [text, before] of this.before) {
      const key = this.keys.get(text) as Key;
      const after = this.rows.get(key);
      if (before && after) changes.updates.push(...this.sql.update(before, after));
      else if (before) changes.deletes.push(this.sql.delete(key));
      else if (after) changes.inserted.push(after);
    }
    const { deletes, updates, inserted } = changes;
    return { deletes, updates, inserts: this.sql.inserts(inserted) };
  }

  protected hasChanged(key: Key): boolean {
    return this.before.has(this.sql.textOf(key));
  }

  /** Rows that the work has changed, before and after. */
  protected changedRows(): [before: Row | undefined, after: Row | undefined][] {
    return [...this.before].map(([text, before]) => [before, this.rows.get(this.keys.get(text) as Key)]);
  }

  /** Forgets rows that a statement of another kind deletes. */
  protected drop(rows: readonly Row[]): void {
    for (const row of rows) this.rows.delete(this.keyOf(row));
  }

  protected factOf(key: Key): string {
    return fact(this.sql.table, this.sql.textOf(key));
  }

  private needOf(key: Key): Need {
    const { lockOf, bundled = false } = this.options;
    return { lock: lockOf?.(key), queries: [this.byKey(key)], bundled };
  }

  private note(key: Key): void {
    const text = this.sql.textOf(key);
    if (this.before.has(text)) return;
    this.before.set(text, this.rows.get(key));
    this.keys.set(text, key);
  }

  private keyOf(row: Row): Key {
    return this.sql.keyOf(row) as Key;
  }
}
