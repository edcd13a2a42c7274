import { type DataSource, type QueryRunner } from 'typeorm';
import { type Deadline, DeadlineError } from '../../common/deadline.js';
import { asStoreError, isReadOnly } from './postgres-errors.js';

/** The members of a `pg` client that this class uses. */
export interface PostgresClient {
  on(event: string, listener: (message: { readonly payload?: string }) => void): void;
  off(event: string, listener: (message: { readonly payload?: string }) => void): void;
  end(): Promise<void>;
}

/**
 * A connection of the pool, which may belong to the application. A connection with an outstanding answer is closed instead
 * of released, because the next user of the connection would receive that answer.
 */
export class PostgresConnection {
  private constructor(
    private readonly runner: QueryRunner,
    readonly client: PostgresClient,
  ) {}

  /** @throws StoreUnavailableError if no connection is available in time; nothing was written */
  static async obtain(dataSource: DataSource, deadline: Deadline): Promise<PostgresConnection> {
    const runner = dataSource.createQueryRunner();
    const connecting = runner.connect() as Promise<PostgresClient>;
    try {
      return new PostgresConnection(runner, await deadline.wait(connecting));
    } catch (error) {
      // Releases a connection that arrives too late.
      void connecting.then(() => runner.release()).catch(() => {});
      throw asStoreError(error, false);
    }
  }

  /** Runs a statement that commits nothing: a read, or a statement inside a transaction. @throws StoreUnavailableError */
  query<Row>(deadline: Deadline, sql: string, values: readonly unknown[] = []): Promise<Row[]> {
    return this.send(deadline, sql, values, false);
  }

  /** Runs a statement that commits. Without an answer, the outcome is unknown. @throws StoreUnavailableError */
  commit<Row>(deadline: Deadline, sql: string, values: readonly unknown[] = []): Promise<Row[]> {
    return this.send(deadline, sql, values, true);
  }

  /** Closes the connection, so that the pool does not reuse it. */
  async end(): Promise<void> {
    void this.client.end().catch(() => {});
    await this.release();
  }

  /** Returns the connection to the pool. */
  async release(): Promise<void> {
    await this.runner.release().catch(() => {});
  }

  private async send<Row>(
    deadline: Deadline,
    sql: string,
    values: readonly unknown[],
    commits: boolean,
  ): Promise<Row[]> {
    if (deadline.isOver) throw asStoreError(deadline.error, false);
    try {
      return await deadline.wait(this.runner.query(sql, [...values]) as Promise<Row[]>);
    } catch (error) {
      // After a failover, a new connection may reach the primary.
      if (error instanceof DeadlineError || isReadOnly(error)) await this.end();
      throw asStoreError(error, commits);
    }
  }
}
