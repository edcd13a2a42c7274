import { type Database, type Statement } from 'better-sqlite3';
import { type Table } from '../../embedded/tables.js';
import { columnName, type ColumnType, type TableName, TABLES } from '../table-definitions.js';

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

/** Rows of one table by primary key. */
export class SqliteTable<Row extends object, Key> implements Table<Row, Key> {
  /** The columns under the names of the row's properties, for SELECT. */
  protected readonly columns: string;
  private readonly properties: readonly (keyof Row & string)[];
  private readonly keys: readonly string[];
  private readonly where: string;

  constructor(
    protected readonly connection: SqliteConnection,
    private readonly table: TableName,
  ) {
    const columns = Object.entries<ColumnType>(TABLES[table].columns);
    this.properties = columns.map(([property]) => property as keyof Row & string);
    this.keys = columns.filter(([, type]) => type.endsWith('key')).map(([property]) => property);
    this.columns = this.properties.map((property) => `"${columnName(property)}" AS "${property}"`).join(', ');
    this.where = this.keys.map((key) => `"${columnName(key)}" = ?`).join(' AND ');
  }

  get(key: Key): Row | undefined {
    return this.one(`SELECT ${this.columns} FROM {${this.table}} WHERE ${this.where}`, ...this.keyValues(key));
  }

  insert(row: Row): void {
    const names = this.properties.map((property) => `"${columnName(property)}"`).join(', ');
    const places = this.properties.map(() => '?').join(', ');
    this.run(
      `INSERT INTO {${this.table}} (${names}) VALUES (${places})`,
      ...this.properties.map((property) => row[property]),
    );
  }

  update(key: Key, patch: Partial<Row>): void {
    const changed = this.properties.filter((property) => patch[property] !== undefined);
    if (changed.length === 0) return;
    const sets = changed.map((property) => `"${columnName(property)}" = ?`).join(', ');
    this.run(
      `UPDATE {${this.table}} SET ${sets} WHERE ${this.where}`,
      ...changed.map((property) => patch[property]),
      ...this.keyValues(key),
    );
  }

  delete(key: Key): void {
    this.run(`DELETE FROM {${this.table}} WHERE ${this.where}`, ...this.keyValues(key));
  }

  protected one(sql: string, ...values: unknown[]): Row | undefined {
    return this.connection.statement(sql).get(...values) as Row | undefined;
  }

  protected all(sql: string, ...values: unknown[]): Row[] {
    return this.connection.statement(sql).all(...values) as Row[];
  }

  /** The column `name` of every row. */
  protected names(sql: string, ...values: unknown[]): string[] {
    const rows = this.connection.statement(sql).all(...values) as { name: string }[];
    return rows.map(({ name }) => name);
  }

  /** @returns how many rows changed */
  protected run(sql: string, ...values: unknown[]): number {
    return this.connection.statement(sql).run(...values).changes;
  }

  private keyValues(key: Key): unknown[] {
    if (typeof key === 'string') return [key];
    return this.keys.map((name) => (key as Record<string, unknown>)[name]);
  }
}
