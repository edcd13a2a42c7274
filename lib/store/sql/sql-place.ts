import { type DataSourceOptions } from 'typeorm';
import { type Dialect, dialectOf } from './dialects.js';

/** Where the tables and functions of one application stand in a database. */
export class SqlPlace {
  /**
   * @param prefix before every name
   * @param schema of PostgreSQL; left out: the first of the connection's search path
   * @param dialect whose quotes stand around every name
   */
  constructor(
    readonly prefix: string,
    readonly schema: string | undefined,
    readonly dialect: Dialect,
  ) {}

  name(of: string): string {
    const names = this.schema === undefined ? [] : [this.schema];
    return [...names, `${this.prefix}${of}`].map((name) => this.quoted(name)).join('.');
  }

  /**
   * SQL with its names filled in: `{turn}` is a table or a function, `{turn_open!}` a name that takes no schema, an
   * index for one, and `{hints'}` a name as text.
   */
  fill(sql: string): string {
    return sql.replace(/\{(\w+)([!']?)\}/g, (_, of: string, form: string) => {
      if (form === '') return this.name(of);
      return form === '!' ? this.quoted(`${this.prefix}${of}`) : `'${this.prefix}${of}'`;
    });
  }

  private quoted(name: string): string {
    const { quote } = this.dialect;
    return `${quote}${name.replaceAll(quote, quote + quote)}${quote}`;
  }
}

export function placeOf(options: DataSourceOptions, tablePrefix: string): SqlPlace {
  const schema = options.type === 'postgres' ? options.schema : undefined;
  return new SqlPlace(tablePrefix, schema, dialectOf(options));
}
