import { type Database } from 'better-sqlite3';
import { StoreRejectedError } from '../../common/sessions.error.js';
import { firstVersion } from '../core/first-version.js';
import { type CoreDatabase, type Transaction } from '../core/tables.js';
import { TurnChangeEmitter } from '../core/turn-change-emitter.js';
import { asStoreError, retryWhileBusy } from './sqlite-errors.js';
import { SqliteConnection, SqliteTable } from './sqlite-table.js';
import { SqliteCheckpoints, SqliteDocuments, SqliteMessages } from './sqlite-contents.js';
import { SqliteSessions } from './sqlite-sessions.js';
import { SqliteLanes, SqliteSignals, SqliteSteps, SqliteTurnEvents, SqliteTurns } from './sqlite-turns.js';

interface PendingWrite {
  readonly work: (tx: Transaction) => unknown;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** A write of a batch that has run but is not committed yet. */
interface RanWrite {
  readonly write: PendingWrite;
  readonly outcome: { readonly result: unknown } | { readonly error: unknown };
}

/** The maximum number of writes per commit, because a commit blocks the event loop. */
const MAX_BATCH = 200;

/**
 * A SQLite file with its own connection. All writes of one event loop tick share a commit, because a commit to disk costs
 * much more than the writes in it. Each write has a savepoint, so that an error reverts only that write. A write resolves
 * only after its commit is on disk.
 */
export class SqliteDatabase implements CoreDatabase {
  private readonly tables: Omit<
    Transaction,
    'now' | 'nextVersion' | 'deleteSession' | 'deleteTurns' | 'deleteExpiredEvents' | 'changed'
  >;
  private readonly lanes: SqliteLanes;
  private readonly connection: SqliteConnection;
  private readonly changes = new TurnChangeEmitter();
  private pending: PendingWrite[] = [];
  private flushing: Promise<void> | null = null;

  constructor(
    private readonly db: Database,
    prefix: string,
    private readonly busyTimeoutMs: number,
  ) {
    const connection = new SqliteConnection(db, prefix);
    this.connection = connection;
    this.lanes = new SqliteLanes(connection);
    this.tables = {
      sessions: new SqliteSessions(connection),
      lanes: this.lanes,
      turns: new SqliteTurns(connection),
      steps: new SqliteSteps(connection),
      signals: new SqliteSignals(connection),
      events: new SqliteTurnEvents(connection),
      checkpoints: new SqliteCheckpoints(connection),
      messages: new SqliteMessages(connection),
      documents: new SqliteDocuments(connection),
      leases: new SqliteTable(connection, 'lease'),
      tombstones: new SqliteTable(connection, 'tombstone'),
      viewLane: (sessionId) => this.lanes.view(sessionId),
      viewOpenLanes: (after, limit) => this.lanes.viewOpen(after, limit),
    };
  }

  write<T>(work: (tx: Transaction) => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.pending.push({ work, resolve: resolve as (result: unknown) => void, reject });
      this.flushing ??= this.flush();
    });
  }

  async read<T>(work: (tx: Transaction) => T): Promise<T> {
    try {
      return this.db.transaction(() => work(this.transaction(new Set())))();
    } catch (error) {
      throw asStoreError(error);
    }
  }

  /** Runs statements that change nothing in a transaction for writing. Waits while another process writes. */
  async tryOut(statements: readonly string[]): Promise<void> {
    const run = this.db.transaction(() => statements.forEach((sql) => this.connection.statement(sql).run()));
    try {
      await retryWhileBusy(() => run.immediate(), this.busyTimeoutMs);
    } catch (error) {
      throw asStoreError(error);
    }
  }

  /** Releases the turns that the previous worker of the file was running, and the lanes that were offered to it. */
  lapseAll(): Promise<void> {
    return this.write((tx) => this.lanes.lapseAll(tx.now));
  }

  onChanged(listener: (turnId: string) => void): () => void {
    return this.changes.subscribe(listener);
  }

  /** Waits for pending writes. */
  async close(): Promise<void> {
    await this.flushing;
    this.db.close();
  }

  private async flush(): Promise<void> {
    // Lets other writes of this event loop tick join the batch.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.pending.length > 0) await this.writeTogether(this.pending.splice(0, MAX_BATCH));
    this.flushing = null;
  }

  private async writeTogether(batch: readonly PendingWrite[]): Promise<void> {
    try {
      await retryWhileBusy(() => this.connection.statement('BEGIN IMMEDIATE').run(), this.busyTimeoutMs);
      this.commit(batch);
    } catch (error) {
      if (this.db.inTransaction) this.db.exec('ROLLBACK');
      // A deferred constraint or a trigger of the application rejects the whole commit. The value of one write must not fail the
      // turns of the others (FIX-61).
      if (batch.length > 1 && asStoreError(error) instanceof StoreRejectedError) {
        for (const write of batch) await this.writeTogether([write]);
        return;
      }
      for (const { reject } of batch) reject(asStoreError(error));
    }
  }

  private commit(batch: readonly PendingWrite[]): void {
    const changed = new Set<string>();
    const tx = this.transaction(changed);
    const ran = batch.map((write): RanWrite => ({ write, outcome: this.run(write.work, tx) }));
    this.connection.statement('COMMIT').run();

    for (const turnId of changed) this.changes.emit(turnId);
    for (const { write, outcome } of ran) {
      if ('error' in outcome) write.reject(outcome.error);
      else write.resolve(outcome.result);
    }
  }

  private run(work: PendingWrite['work'], tx: Transaction): RanWrite['outcome'] {
    this.connection.statement('SAVEPOINT operation').run();
    try {
      const result = work(tx);
      this.connection.statement('RELEASE operation').run();
      return { result };
    } catch (error) {
      // Some disk errors end the whole transaction. Then the whole batch has failed.
      if (!this.db.inTransaction) throw error;
      this.connection.statement('ROLLBACK TO operation').run();
      this.connection.statement('RELEASE operation').run();
      return { error: asStoreError(error) };
    }
  }

  private transaction(changed: Set<string>): Transaction {
    const now = this.now();
    return {
      ...this.tables,
      now,
      nextVersion: (before) => (before > 0 ? before + 1 : firstVersion(this.tables.leases, now)),
      deleteSession: (sessionId) => this.deleteSession(sessionId),
      deleteTurns: (settledBefore, limit) => this.deleteTurns(settledBefore, limit),
      deleteExpiredEvents: (limit) => this.deleteExpiredEvents(now, limit),
      changed: (turnId) => changed.add(turnId),
    };
  }

  private now(): number {
    const row = this.connection.statement("SELECT CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER) AS now").get();
    return (row as { now: number }).now;
  }

  private deleteSession(sessionId: string): void {
    const remove = (sql: string): void => void this.connection.statement(sql).run(sessionId);
    const turns = 'SELECT id FROM {turn} WHERE session_id = ?';
    remove(`DELETE FROM {step} WHERE turn_id IN (${turns})`);
    remove(`DELETE FROM {signal} WHERE turn_id IN (${turns})`);
    remove(`DELETE FROM {turn_event} WHERE turn_id IN (${turns})`);
    for (const table of ['turn', 'checkpoint', 'message', 'document', 'lane']) {
      remove(`DELETE FROM {${table}} WHERE session_id = ?`);
    }
    this.tables.sessions.delete(sessionId);
  }

  private deleteTurns(settledBefore: number, limit: number): number {
    const old = 'SELECT id FROM {turn} WHERE settled_at < ? ORDER BY settled_at, rowid LIMIT ?';
    const remove = (sql: string): number => this.connection.statement(sql).run(settledBefore, limit).changes;
    remove(`DELETE FROM {step} WHERE turn_id IN (${old})`);
    remove(`DELETE FROM {signal} WHERE turn_id IN (${old})`);
    remove(`DELETE FROM {turn_event} WHERE turn_id IN (${old})`);
    return remove(`DELETE FROM {turn} WHERE id IN (${old})`);
  }

  private deleteExpiredEvents(now: number, limit: number): number {
    const over = `SELECT id FROM {turn} WHERE event_ttl IS NOT NULL AND settled_at + event_ttl <= ?
      ORDER BY settled_at + event_ttl, rowid LIMIT ?`;
    const run = (sql: string): number => this.connection.statement(sql).run(now, limit).changes;
    run(`DELETE FROM {turn_event} WHERE turn_id IN (${over})`);
    return run(`UPDATE {turn} SET event_ttl = NULL WHERE id IN (${over})`);
  }
}
