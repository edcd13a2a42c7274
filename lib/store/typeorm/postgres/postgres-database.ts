import { setTimeout as delay } from 'node:timers/promises';
import { type DataSource } from 'typeorm';
import { type SqlPlace } from '../sql-place.js';
import { asStoreError, isSerializationFailure } from './postgres-errors.js';

const MAX_RETRIES = 10;
const RETRY_PAUSE_MS = 5;

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
  ) {}

  async init(): Promise<void> {
    const [{ level }] = await this.query<{ level: string }>(
      "SELECT current_setting('default_transaction_isolation') AS level",
    );
    this.otherIsolation = level !== 'read committed';
  }

  /** @param operation the function's name without prefix, with its version: `accept_v1` */
  async call<T>(operation: string, args: Readonly<Record<string, unknown>>): Promise<T> {
    const sql = `SELECT ${this.place.name(operation)}($1::json) AS result`;
    const [{ result }] = await this.retrying(() => this.inReadCommitted<{ result: T }>(sql, [JSON.stringify(args)]));
    return result;
  }

  /** A statement that names tables as `{turn}`. */
  async query<Row>(sql: string, values: readonly unknown[] = []): Promise<Row[]> {
    return this.retrying(() => this.dataSource().query<Row[]>(this.place.fill(sql), [...values]));
  }

  private async inReadCommitted<Row>(sql: string, values: unknown[]): Promise<Row[]> {
    if (!this.otherIsolation) return this.dataSource().query<Row[]>(sql, values);
    return this.dataSource().transaction('READ COMMITTED', (manager) => manager.query<Row[]>(sql, values));
  }

  /** What PostgreSQL rolled back to break a deadlock did not happen, and can be sent again. */
  private async retrying<T>(work: () => Promise<T>): Promise<T> {
    for (let retries = 0; ; retries += 1) {
      try {
        return await work();
      } catch (error) {
        if (!isSerializationFailure(error) || retries >= MAX_RETRIES) throw asStoreError(error);
        await delay(RETRY_PAUSE_MS * (1 + retries) * Math.random());
      }
    }
  }
}
