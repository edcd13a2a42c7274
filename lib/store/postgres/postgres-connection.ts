import { type DataSource, type QueryRunner } from 'typeorm';
import { type Deadline, DeadlineError } from '../../common/deadline.js';
import { asStoreError, isReadOnly } from './postgres-errors.js';

/** What we need of a client of `pg`. */
export interface PostgresClient {
  on(event: string, listener: (message: { readonly payload?: string }) => void): void;
  off(event: string, listener: (message: { readonly payload?: string }) => void): void;
  end(): Promise<void>;
}

/**
 * A connection of the pool, which may be the application's. One that owes us an answer is closed and not given back: the
 * answer would come late, to somebody else.
 */
export class PostgresConnection {
  private constructor(
    private readonly runner: QueryRunner,
    readonly client: PostgresClient,
  ) {}

  /** @throws StoreUnavailableError when there is none in time: nothing was written */
  static async obtain(dataSource: DataSource, deadline: Deadline): Promise<PostgresConnection> {
    const runner = dataSource.createQueryRunner();
    const connecting = runner.connect() as Promise<PostgresClient>;
    try {
      return new PostgresConnection(runner, await deadline.wait(connecting));
    } catch (error) {
      // One that comes too late goes to whoever is next.
      void connecting.then(() => runner.release()).catch(() => {});
      throw asStoreError(error, false);
    }
  }

  /** What writes nothing for good: a read, or a statement inside a transaction. @throws StoreUnavailableError */
  query<Row>(deadline: Deadline, sql: string, values: readonly unknown[] = []): Promise<Row[]> {
    return this.send(deadline, sql, values, false);
  }

  /** What ends with a commit: without an answer nobody knows whether it happened. @throws StoreUnavailableError */
  commit<Row>(deadline: Deadline, sql: string, values: readonly unknown[] = []): Promise<Row[]> {
    return this.send(deadline, sql, values, true);
  }

  /** Nobody gets it again. */
  async end(): Promise<void> {
    void this.client.end().catch(() => {});
    await this.release();
  }

  /** Gives it back. */
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
      // After a fail-over, another connection may lead to the server that takes writes.
      if (error instanceof DeadlineError || isReadOnly(error)) await this.end();
      throw asStoreError(error, commits);
    }
  }
}
