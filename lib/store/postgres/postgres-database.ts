import { setTimeout as delay } from 'node:timers/promises';
import { type DataSource } from 'typeorm';
import { Deadline } from '../../common/deadline.js';
import { SessionsConfigurationError, StoreUnavailableError } from '../../common/sessions.error.js';
import { type SqlPlace } from '../sql/sql-place.js';
import { settingError } from '../sql/start-checks.js';
import { PostgresConnection } from './postgres-connection.js';
import { isSerializationFailure } from './postgres-errors.js';
import { postgresMessages } from './postgres.messages.js';

const MAX_RETRIES = 10;
const RETRY_PAUSE_MS = 5;
/** The share of the remaining time that a call may wait for locks. PostgreSQL then reports the timeout before the caller gives up. */
const LOCK_SHARE = 0.9;

/** A call of one of the store's functions. */
export interface FunctionCall {
  /** The name of the function without prefix, with its version: `accept_v1`. */
  readonly operation: string;
  /** The argument, as JSON. */
  readonly args: string;
}

/**
 * Calls the store's functions. Each call is one round trip and one transaction. A function takes and returns one `json`
 * value. Nested JSON (a state, a message) is passed as a string, so that PostgreSQL never parses it. Answers are read as text
 * and parsed here, because applications replace `pg`'s parsers of json, int8 and other types for the whole process (FIX-66).
 */
export class PostgresDatabase {
  /** Whether the default isolation level is not READ COMMITTED. The functions need it to read the rows that they locked. */
  private otherIsolation = false;

  constructor(
    readonly place: SqlPlace,
    /** @throws StoreUnavailableError if the store is not open */
    private readonly dataSource: () => DataSource,
    private readonly operationTimeoutMs: number,
  ) {}

  /**
   * Reads the settings of the server.
   * @param checksEncoding whether to check the encodings (FIX-65)
   * @throws SessionsConfigurationError for an encoding that lacks characters
   */
  async init(checksEncoding: boolean): Promise<void> {
    const [{ level, ...encodings }] = await this.query<{
      level?: string;
      server_encoding: string;
      client_encoding: string;
    }>(
      `SELECT current_setting('default_transaction_isolation') AS level,
              current_setting('server_encoding') AS server_encoding, current_setting('client_encoding') AS client_encoding`,
    );
    if (level === undefined) throw changedText('other keys');
    this.otherIsolation = level !== 'read committed';
    for (const [name, value] of Object.entries(checksEncoding ? encodings : {})) {
      // Both spellings are valid values of client_encoding.
      if (/^(UTF8|UNICODE)$/i.test(value.replace('-', ''))) continue;
      const cure =
        name === 'server_encoding' ? postgresMessages.serverEncodingCure() : postgresMessages.clientEncodingCure();
      throw settingError(name, value, cure);
    }
  }

  /** Returns the deadline of an operation that starts now. */
  deadline(): Deadline {
    return new Deadline(this.operationTimeoutMs);
  }

  /** @param operation the function's name without prefix, with its version: `accept_v1` */
  async call<T>(operation: string, args: Readonly<Record<string, unknown>>): Promise<T> {
    const [result] = await this.callAll([{ operation, args: JSON.stringify(args) }], this.deadline());
    return result as T;
  }

  /**
   * Runs one call, or several lane calls in order, in one statement. Commits all of them or none.
   * @param lockShare the share of the time left at sending that they may wait for a lock
   */
  async callAll(calls: readonly FunctionCall[], deadline: Deadline, lockShare = LOCK_SHARE): Promise<unknown[]> {
    // Several calls use one wrapper function, so that the SQL depends only on the number of calls.
    const isOne = calls.length === 1;
    const name = this.place.name(isOne ? calls[0].operation : 'lane_call_v1');
    const columns = calls.map((_, at) =>
      isOne
        ? `${name}($2::json)::text AS result0`
        : `${name}($${2 * at + 2}, $${2 * at + 3}::json)::text AS result${at}`,
    );
    const sql = `SELECT set_config('lock_timeout', $1, true), ${columns.join(', ')}`;
    const args = calls.flatMap((call) => (isOne ? [call.args] : [call.operation, call.args]));
    const rows = await this.retrying(deadline, (connection) => {
      // PostgreSQL interprets 0 as no timeout.
      const lockTimeoutMs = String(Math.max(1, Math.floor(lockShare * deadline.leftMs)));
      return this.inReadCommitted<Record<string, unknown>>(connection, deadline, sql, [lockTimeoutMs, ...args]);
    });
    return calls.map((_, at) => parsed(rows.at(0)?.[`result${at}`]));
  }

  /** Runs a statement that only reads, with table names such as `{turn}`. */
  async query<Row>(sql: string, values: readonly unknown[] = []): Promise<Row[]> {
    const deadline = this.deadline();
    const text = `SELECT row_to_json(answer)::text AS answer FROM (${this.place.fill(sql)}) AS answer`;
    const rows = await this.retrying(deadline, (connection) =>
      connection.query<{ answer: unknown }>(deadline, text, values),
    );
    return rows.map(({ answer }) => parsed(answer) as Row);
  }

  /** Runs statements in one round trip and a transaction that is rolled back, with table names such as `{turn}`. */
  tryOut(statements: readonly string[]): Promise<void> {
    const deadline = this.deadline();
    const sql = ['START TRANSACTION', ...statements.map((each) => this.place.fill(each)), 'ROLLBACK'].join(';\n');
    return this.retrying(deadline, async (connection) => {
      try {
        await connection.query(deadline, sql);
      } catch (error) {
        await connection.query(deadline, 'ROLLBACK').catch(() => connection.end());
        throw error;
      }
    });
  }

  /**
   * Returns the distinct values of a column in one session. Jumps from value to value in an index that starts with both
   * columns, so the cost does not depend on the number of rows.
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

  /** Retries work that PostgreSQL rolled back to break a deadlock, because none of it was applied. */
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

/**
 * @throws SessionsConfigurationError if the application has replaced pg's parser of text
 * @throws StoreUnavailableError if the answer lacks the column. A call that wrote may have been applied
 */
function parsed(text: unknown): unknown {
  if (text === null) return null;
  if (text === undefined) {
    throw new StoreUnavailableError(postgresMessages.missingColumns(), { reason: 'unknown' });
  }
  try {
    return JSON.parse(text as string);
  } catch {
    throw changedText(typeof text);
  }
}

function changedText(received: string): SessionsConfigurationError {
  return new SessionsConfigurationError(postgresMessages.changedText(received));
}
