import { type Database, type Statement } from 'better-sqlite3';
import { type Table } from '../core/tables.js';
import { columnName, columnsOf, type TableName } from '../sql/columns.js';

/** A connection that prepares each statement once. */
export class SqliteConnection {
  private readonly prepared = new Map<string, Statement>();

  constructor(
    readonly db: Database,
    readonly prefix: string,
  ) {}

  /** @param sql names tables as `{turn}` */
  statement(sql: string): Statement {
    let statement = this.prepared.get(sql);
    if (!statement) {
      statement = this.db.prepare(sql.replace(/\{(\w+)\}/g, (_, table: string) => `"${this.prefix}${table}"`));
      this.prepared.set(sql, statement);
    }
    return statement;
  }
}

/** Rows of one table by primary key. SQL is built only once, because a turn uses it many times. */
export class SqliteTable<Row extends object, Key> implements Table<Row, Key> {
  /** The columns for SELECT, aliased to the row's properties. */
  protected readonly columns: string;
  private readonly properties: readonly (keyof Row & string)[];
  private readonly keys: readonly string[];
  private readonly selectRow: string;
  private readonly insertRow: string;
  private readonly deleteRow: string;
  /** The UPDATE statements by the changed properties. */
  private readonly updates = new Map<string, string>();

  constructor(
    protected readonly connection: SqliteConnection,
    private readonly table: TableName,
  ) {
    const columns = columnsOf(table);
    this.properties = columns.map(([property]) => property as keyof Row & string);
    this.keys = columns.filter(([, type]) => type.endsWith('key')).map(([property]) => property);
    this.columns = this.properties.map((property) => `"${columnName(property)}" AS "${property}"`).join(', ');
    const names = this.properties.map((property) => `"${columnName(property)}"`).join(', ');
    const places = this.properties.map(() => '?').join(', ');
    this.selectRow = `SELECT ${this.columns} FROM {${table}} ${this.where}`;
    this.insertRow = `INSERT INTO {${table}} (${names}) VALUES (${places})`;
    this.deleteRow = `DELETE FROM {${table}} ${this.where}`;
  }

  get(key: Key): Row | undefined {
    return this.one(this.selectRow, ...this.keyValues(key));
  }

  insert(row: Row): void {
    this.run(this.insertRow, ...this.properties.map((property) => row[property]));
  }

  update(key: Key, patch: Partial<Row>): void {
    const changed = this.properties.filter((property) => patch[property] !== undefined);
    if (changed.length === 0) return;
    this.run(this.updateRow(changed), ...changed.map((property) => patch[property]), ...this.keyValues(key));
  }

  delete(key: Key): void {
    this.run(this.deleteRow, ...this.keyValues(key));
  }

  protected one(sql: string, ...values: unknown[]): Row | undefined {
    return this.connection.statement(sql).get(...values) as Row | undefined;
  }

  protected all(sql: string, ...values: unknown[]): Row[] {
    return this.connection.statement(sql).all(...values) as Row[];
  }

  /** Returns the column `name` of every row. */
  protected names(sql: string, ...values: unknown[]): string[] {
    const rows = this.connection.statement(sql).all(...values) as { name: string }[];
    return rows.map(({ name }) => name);
  }

  /** @returns the number of changed rows */
  protected run(sql: string, ...values: unknown[]): number {
    return this.connection.statement(sql).run(...values).changes;
  }

  private get where(): string {
    return `WHERE ${this.keys.map((key) => `"${columnName(key)}" = ?`).join(' AND ')}`;
  }

  private updateRow(changed: readonly string[]): string {
    const name = changed.join();
    let sql = this.updates.get(name);
    if (sql === undefined) {
      const sets = changed.map((property) => `"${columnName(property)}" = ?`).join(', ');
      sql = `UPDATE {${this.table}} SET ${sets} ${this.where}`;
      this.updates.set(name, sql);
    }
    return sql;
  }

  private keyValues(key: Key): unknown[] {
    if (typeof key === 'string') return [key];
    return this.keys.map((name) => (key as Record<string, unknown>)[name]);
  }
}
