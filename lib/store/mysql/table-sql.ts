import { columnName, columnsOf, type TableName } from '../sql/columns.js';
import { places, type Statement, statement, type Value } from './statement.js';

/** Far below the smallest `max_allowed_packet` with which the store starts, because a character has up to three bytes. */
const INSERT_CHARS = 1_000_000;

/** The statements of one table's rows by primary key. */
export class TableSql<Row extends object = Record<string, Value>> {
  /** The columns for SELECT, aliased to the row's properties. */
  readonly columns: string;
  private readonly properties: readonly (keyof Row & string)[];
  private readonly keys: readonly (keyof Row & string)[];
  private readonly where: string;

  constructor(readonly table: TableName) {
    const columns = columnsOf(table);
    const names = (of: typeof columns): (keyof Row & string)[] =>
      of.map(([property]) => property as keyof Row & string);
    this.properties = names(columns);
    this.keys = names(columns.filter(([, type]) => type.endsWith('key')));
    this.columns = this.properties.map((property) => `${this.column(property)} AS \`${property}\``).join(', ');
    this.where = this.keys.map((key) => `${this.column(key)} = ?`).join(' AND ');
  }

  /** Returns the key as one string. Its parts are ids, names and numbers, which contain no control characters. */
  textOf(key: unknown): string {
    return this.keyValues(key).join('\u0000');
  }

  /** Returns the key of a row: its single value, or all parts by name. */
  keyOf(row: Row): unknown {
    return this.keys.length === 1 ? row[this.keys[0]] : row;
  }

  /** @param rest the statement after FROM and the table */
  select(rest: string, ...values: Value[]): Statement {
    return statement(`SELECT ${this.columns} FROM {${this.table}} ${rest}`, ...values);
  }

  byKey(key: unknown, lock = ''): Statement {
    return this.select(`WHERE ${this.where} ${lock}`, ...this.keyValues(key));
  }

  /** Selects like byKey, for a key with one part. */
  byTerm(term: { readonly sql: string; readonly values: readonly Value[] }, lock: string): Statement {
    return this.select(`WHERE ${this.column(this.keys[0])} = ${term.sql} ${lock}`, ...term.values);
  }

  /** Returns the statements that insert the rows. Each has little more than {@link INSERT_CHARS}, to fit in a packet. */
  inserts(rows: readonly Row[]): Statement[] {
    const groups: Row[][] = [];
    let chars = Infinity;
    for (const row of rows) {
      const own = this.properties.reduce((total, property) => total + String(row[property]).length, 0);
      if (chars + own > INSERT_CHARS) {
        groups.push([]);
        chars = 0;
      }
      groups.at(-1)?.push(row);
      chars += own;
    }
    return groups.map((group) => this.insert(group));
  }

  private insert(rows: readonly Row[]): Statement {
    const names = this.properties.map((property) => this.column(property)).join(', ');
    const row = `(${places(this.properties)})`;
    return statement(
      `INSERT INTO {${this.table}} (${names}) VALUES ${rows.map(() => row).join(', ')}`,
      ...rows.flatMap((values) => this.properties.map((property) => values[property] as Value)),
    );
  }

  /** Returns the update from one state of a row to the next, or an empty list if nothing changed. */
  update(before: Row, after: Row): Statement[] {
    const changed = this.properties.filter((property) => before[property] !== after[property]);
    if (changed.length === 0) return [];
    const sets = changed.map((property) => `${this.column(property)} = ?`).join(', ');
    const values = changed.map((property) => after[property] as Value);
    return [statement(`UPDATE {${this.table}} SET ${sets} WHERE ${this.where}`, ...values, ...this.keyValues(after))];
  }

  delete(key: unknown): Statement {
    return statement(`DELETE FROM {${this.table}} WHERE ${this.where}`, ...this.keyValues(key));
  }

  private column(property: string): string {
    return `{${this.table}}.\`${columnName(property)}\``;
  }

  private keyValues(key: unknown): Value[] {
    if (typeof key !== 'object' || key === null) return [key as Value];
    return this.keys.map((name) => (key as Row)[name] as Value);
  }
}
