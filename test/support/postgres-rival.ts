import pg from 'pg';
import { eventually } from './eventually.js';

/** Another client of a PostgreSQL store with an uncommitted transaction. */
export class PostgresRival {
  private constructor(
    private readonly client: pg.Client,
    private readonly tablePrefix: string,
  ) {}

  static async open(url: string, tablePrefix: string): Promise<PostgresRival> {
    const client = new pg.Client(url);
    await client.connect();
    return new PostgresRival(client, tablePrefix);
  }

  begin(): Promise<unknown> {
    return this.client.query('BEGIN');
  }

  end(how: string): Promise<unknown> {
    return this.client.query(how);
  }

  close(): Promise<void> {
    return this.client.end();
  }

  /** Calls a function of the store. */
  async call<T>(operation: string, args: object): Promise<T> {
    const sql = `SELECT "${this.tablePrefix}${operation}_v1"($1::json) AS result`;
    const [{ result }] = await this.query<{ result: T }>(sql, [JSON.stringify(args)]);
    return result;
  }

  async query<Row extends pg.QueryResultRow>(sql: string, values: readonly unknown[] = []): Promise<Row[]> {
    return (await this.client.query<Row>(sql, [...values])).rows;
  }

  /** Resolves when another transaction waits for this one. */
  async isWaitedFor(): Promise<void> {
    const sql = 'SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))';
    await eventually(async () => (await this.query(sql)).length > 0, { what: 'that somebody waits' });
  }
}
