/** Where the tables and functions of one application stand in a database. */
export class SqlPlace {
  /**
   * @param prefix before every name
   * @param schema of PostgreSQL; left out: the first of the connection's search path
   * @param quote around every name
   */
  constructor(
    readonly prefix: string,
    readonly schema: string | undefined,
    private readonly quote: '"' | '`',
  ) {}

  name(of: string): string {
    const names = this.schema === undefined ? [] : [this.schema];
    return [...names, `${this.prefix}${of}`].map((name) => this.quoted(name)).join('.');
  }

  /** SQL that names tables and functions as `{turn}`, and what follows their name, an index for one, as `{turn_open!}`. */
  fill(sql: string): string {
    return sql.replace(/\{(\w+)(!?)\}/g, (_, of: string, bare: string) =>
      bare ? this.quoted(`${this.prefix}${of}`) : this.name(of),
    );
  }

  private quoted(name: string): string {
    return `${this.quote}${name}${this.quote}`;
  }
}
