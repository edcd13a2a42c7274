import { setTimeout as delay } from 'node:timers/promises';
import { type DataSource } from 'typeorm';
import { Deadline } from '../../common/deadline.js';
import { type SqlPlace } from '../sql/sql-place.js';
import { PostgresConnection } from './postgres-connection.js';
import { isSerializationFailure } from './postgres-errors.js';

const MAX_RETRIES = 10;
const RETRY_PAUSE_MS = 5;
/** Of the time that is left; so PostgreSQL says that it waited in vain, and does not wait on for somebody who is gone. */
const LOCK_SHARE = 0.9;

/** A call of one of our functions. */
export interface FunctionCall {
  /** Its name without prefix, with its version: `accept_v1`. */
  readonly operation: string;
  /** Its json. */
  readonly args: string;
}

/**
 * Calls our functions: one round trip and one transaction each. A function takes one json and gives one json, in which
 * text that is JSON itself (a state, a message) stands as a string, so that PostgreSQL never looks into it.
 */
export class PostgresDatabase {
  /** The application's default is not READ COMMITTED, under which the functions read what they have locked. */
  private otherIsolation = false;

  constructor(
    readonly place: SqlPlace,
    /** @throws StoreUnavailableError while it is not open */
    private readonly dataSource: () => DataSource,
    private readonly operationTimeoutMs: number,
  ) {}

  async init(): Promise<void> {
    const [{ level }] = await this.query<{ level: string }>(
      "SELECT current_setting('default_transaction_isolation') AS level",
    );
    this.otherIsolation = level !== 'read committed';
  }

  /** By when an operation that begins now must have its answer. */
  deadline(): Deadline {
    return new Deadline(this.operationTimeoutMs);
  }

  /** @param operation the function's name without prefix, with its version: `accept_v1` */
  async call<T>(operation: string, args: Readonly<Record<string, unknown>>): Promise<T> {
    const [result] = await this.callAll([{ operation, args: JSON.stringify(args) }], this.deadline());
    return result as T;
  }

  /**
   * A call, or several that work in lanes, one after the other, in one statement: all of them are committed, or none.
   * @param lockShare of the time that is left when they are sent: for how long they wait for a lock at most
   */
  async callAll(calls: readonly FunctionCall[], deadline: Deadline, lockShare = LOCK_SHARE): Promise<unknown[]> {
    // Several by a function of functions: the server sees one text for each number of them, whichever they are.
    const isOne = calls.length === 1;
    const name = this.place.name(isOne ? calls[0].operation : 'lane_call_v1');
    const columns = calls.map((_, at) =>
      isOne ? `${name}($2::json) AS result0` : `${name}($${2 * at + 2}, $${2 * at + 3}::json) AS result${at}`,
    );
    const sql = `SELECT set_config('lock_timeout', $1, true), ${columns.join(', ')}`;
    const args = calls.flatMap((call) => (isOne ? [call.args] : [call.operation, call.args]));
    const [row] = await this.retrying(deadline, (connection) => {
      // For ever is what PostgreSQL takes 0 for.
      const lockTimeoutMs = String(Math.max(1, Math.floor(lockShare * deadline.leftMs)));
      return this.inReadCommitted<Record<string, unknown>>(connection, deadline, sql, [lockTimeoutMs, ...args]);
    });
    return calls.map((_, at) => row[`result${at}`]);
  }

  /** A statement that reads, and names tables as `{turn}`. */
  query<Row>(sql: string, values: readonly unknown[] = []): Promise<Row[]> {
    const deadline = this.deadline();
    return this.retrying(deadline, (connection) => connection.query<Row>(deadline, this.place.fill(sql), values));
  }

  /**
   * The different values of a column in one session, from one to the next in an index that begins with both, whatever stands
   * under each.
   */
  async names(table: string, column: string, sessionId: string): Promise<string[]> {
    const next = (rest: string): string =>
      `(SELECT ${column} FROM {${table}} WHERE session_id = $1 ${rest} ORDER BY ${column} LIMIT 1)`;
    const rows = await this.query<{ name: string }>(
      `WITH RECURSIVE found (name) AS (
         ${next('')}
         UNION ALL
         SELECT ${next(`AND ${column} > found.name`)} FROM found WHERE found.name IS NOT NULL
       )
       SELECT name FROM found WHERE name IS NOT NULL`,
      [sessionId],
    );
    return rows.map(({ name }) => name);
  }

  private async inReadCommitted<Row>(
    connection: PostgresConnection,
    deadline: Deadline,
    sql: string,
    values: readonly unknown[],
  ): Promise<Row[]> {
    if (!this.otherIsolation) return connection.commit<Row>(deadline, sql, values);
    try {
      await connection.query(deadline, 'START TRANSACTION ISOLATION LEVEL READ COMMITTED');
      const rows = await connection.query<Row>(deadline, sql, values);
      await connection.commit(deadline, 'COMMIT');
      return rows;
    } catch (error) {
      await connection.query(deadline, 'ROLLBACK').catch(() => connection.end());
      throw error;
    }
  }

  /** What PostgreSQL rolled back to break a deadlock did not happen, and can be sent again. */
  private async retrying<T>(deadline: Deadline, work: (connection: PostgresConnection) => Promise<T>): Promise<T> {
    for (let retries = 0; ; retries += 1) {
      try {
        return await this.withConnection(deadline, work);
      } catch (error) {
        if (!isSerializationFailure(error) || retries >= MAX_RETRIES || deadline.isOver) throw error;
        await delay(RETRY_PAUSE_MS * (1 + retries) * Math.random());
      }
    }
  }

  private async withConnection<T>(
    deadline: Deadline,
    work: (connection: PostgresConnection) => Promise<T>,
  ): Promise<T> {
    const connection = await PostgresConnection.obtain(this.dataSource(), deadline);
    try {
      return await work(connection);
    } finally {
      await connection.release();
    }
  }
}
