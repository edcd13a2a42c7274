import { type Duplex } from 'node:stream';
import { type PoolConnection, type QueryOptions, type TypeCast } from 'mysql2';
import { type Deadline } from '../../common/deadline.js';
import { type SqlPlace } from '../sql/sql-place.js';
import { endsConnection, MysqlFailure, PacketTooLargeError } from './mysql-errors.js';
import { type Answer, type Statement, statement, type Value } from './statement.js';

/** The maximum characters per round trip: `max_allowed_packet` is 16 MB in MariaDB, and quoting lengthens strings. */
const MAX_TRIP = 1_000_000;

const COMMIT = statement('COMMIT');

/**
 * The settings that the statements require, regardless of defaults of the server or application. Statements read the rows
 * that they locked, oversized values are rejected, a backslash escapes, and no local time is skipped or repeated.
 */
const SETTINGS: readonly Statement[] = [
  statement('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED'),
  statement(
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', autocommit = 1, innodb_lock_wait_timeout = 5",
  ),
  statement('SELECT @@max_allowed_packet AS bytes'),
];

/** The most bytes of UTF-8 per character of a string, and the most characters that quoting makes of one. */
const MAX_GROWTH = 3 * 2;

const NUMBERS = new Set(['TINY', 'SHORT', 'LONG', 'INT24', 'LONGLONG']);

/** Converts values: VARBINARY keys are returned as strings, and times and counters stay below 2^53. */
const typeCast: TypeCast = (field) => {
  const text = field.string('utf8');
  return text !== null && NUMBERS.has(field.type) ? Number(text) : text;
};

/** A connection of the pool for one operation. Sends several statements in one round trip. */
export class MysqlConnection {
  /** The `max_allowed_packet` of each connection that has the settings. */
  private static readonly prepared = new WeakMap<object, number>();
  private broken = false;

  constructor(
    private readonly raw: PoolConnection,
    private readonly place: SqlPlace,
    private readonly deadline: Deadline,
  ) {}

  /** @throws MysqlFailure of the first failed statement. Later statements have not run */
  async run(statements: readonly Statement[]): Promise<Answer[]> {
    const prepare = MysqlConnection.prepared.has(this.raw) ? [] : SETTINGS;
    const answers: Answer[] = [];
    for (const trip of trips([...prepare, ...statements])) answers.push(...(await this.send(trip)));
    if (prepare.length > 0) MysqlConnection.prepared.set(this.raw, Number(answers[prepare.length - 1].rows[0].bytes));
    return answers.slice(prepare.length);
  }

  /** Runs the remaining statements of a transaction, then commits. @throws MysqlFailure */
  async commit(statements: readonly Statement[]): Promise<void> {
    await this.run([...statements, COMMIT]);
  }

  /** Ends the transaction, if necessary by closing the connection. */
  async rollBack(): Promise<void> {
    if (this.broken) return;
    try {
      await this.run([statement('ROLLBACK')]);
    } catch {
      this.broken = true;
    }
  }

  release(): void {
    if (!this.broken) {
      this.raw.release();
      return;
    }
    this.raw.destroy();
    // The driver's own method waits for the server, which may never answer.
    (this.raw as { stream?: Duplex }).stream?.destroy();
  }

  private async send(trip: readonly Statement[]): Promise<Answer[]> {
    try {
      return await this.deadline.wait(this.query(trip));
    } catch (error) {
      this.broken ||= endsConnection(error);
      throw new MysqlFailure(error, trip.includes(COMMIT));
    }
  }

  private async query(statements: readonly Statement[]): Promise<Answer[]> {
    const options = {
      sql: statements.map(({ sql }) => this.place.fill(sql)).join(';\n'),
      values: statements.flatMap(({ values }) => values),
      typeCast,
      rowsAsArray: false,
      nestTables: false,
    } satisfies QueryOptions;
    this.assertFits(options);
    return new Promise((resolve, reject) => {
      this.raw.query(options, (error, result) => {
        if (error) reject(error);
        else resolve((statements.length === 1 ? [result] : (result as unknown[])).map(toAnswer));
      });
    });
  }

  /** @throws PacketTooLargeError. After a packet that is too large, the server would close the connection without an answer */
  private assertFits({ sql, values }: { readonly sql: string; readonly values: readonly Value[] }): void {
    const maxBytes = MysqlConnection.prepared.get(this.raw) ?? Infinity;
    if (MAX_GROWTH * values.reduce(lengthWith, sql.length) < maxBytes) return;
    const bytes = Buffer.byteLength(this.raw.format(sql, [...values]));
    // The server counts the byte of the command, and rejects a packet that reaches the limit.
    if (bytes + 1 >= maxBytes) throw new PacketTooLargeError(bytes, maxBytes);
  }
}

function lengthWith(length: number, value: Value): number {
  return length + String(value).length;
}

function* trips(statements: readonly Statement[]): Generator<Statement[]> {
  let trip: Statement[] = [];
  let size = 0;
  for (const next of statements) {
    const length = next.values.reduce(lengthWith, next.sql.length);
    if (trip.length > 0 && size + length > MAX_TRIP) {
      yield trip;
      trip = [];
      size = 0;
    }
    trip.push(next);
    size += length;
  }
  yield trip;
}

function toAnswer(result: unknown): Answer {
  if (Array.isArray(result)) return { rows: result as Answer['rows'], affected: 0 };
  const { affectedRows } = result as { affectedRows?: number };
  return { rows: [], affected: affectedRows ?? 0 };
}
