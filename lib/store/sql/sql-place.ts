import { type DataSourceOptions } from 'typeorm';
import { SessionsConfigurationError } from '../../common/sessions.error.js';
import { type Dialect, dialectOf } from './dialects.js';
import { sqlMessages } from './sql.messages.js';

/** The names of the tables and functions of one application in a database. */
export class SqlPlace {
  /** What stands for each placeholder. Every statement has some of the same few. */
  private readonly replacements = new Map<string, string>();

  /**
   * @param prefix the prefix of every name
   * @param schema the PostgreSQL schema. Default: the first schema of the connection's search path
   * @param dialect the dialect that quotes every name
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
   * Replaces the placeholders in SQL. `{turn}` is a table or function, `{turn_open!}` a name without a schema, such as an
   * index, and `{changes'}` a name as a string literal.
   */
  fill(sql: string): string {
    return sql.replace(/\{(\w+)([!']?)\}/g, (placeholder, of: string, form: string) => {
      const known = this.replacements.get(placeholder);
      if (known !== undefined) return known;
      const replacement = this.replacementOf(of, form);
      this.replacements.set(placeholder, replacement);
      return replacement;
    });
  }

  private replacementOf(of: string, form: string): string {
    if (form === '') return this.name(of);
    return form === '!' ? this.quoted(`${this.prefix}${of}`) : `'${this.prefix}${of}'`;
  }

  private quoted(name: string): string {
    const { quote } = this.dialect;
    return `${quote}${name.replaceAll(quote, quote + quote)}${quote}`;
  }
}

/**
 * Returns the place of the tables. Their names begin with the `entityPrefix` of the DataSource, as those of its entities do.
 * @throws SessionsConfigurationError if the prefixes are not allowed in names
 */
export function placeOf(options: DataSourceOptions, tablePrefix: string): SqlPlace {
  const schema = options.type === 'postgres' ? options.schema : undefined;
  const { entityPrefix = '' } = options;
  const prefix = `${entityPrefix}${tablePrefix}`;
  // The prefix is inserted into SQL.
  if (entityPrefix !== '' && !/^[A-Za-z_]\w{0,30}$/.test(prefix)) {
    throw new SessionsConfigurationError(sqlMessages.wrongPrefix(prefix));
  }
  return new SqlPlace(prefix, schema, dialectOf(options));
}
