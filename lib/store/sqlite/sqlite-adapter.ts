import { existsSync, mkdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { Logger } from '@nestjs/common';
import type BetterSqlite3 from 'better-sqlite3';
import { type DataSourceOptions } from 'typeorm';
import { loadPeer } from '../../common/load-peer.js';
import { SessionsConfigurationError, StoreUnavailableError } from '../../common/sessions.error.js';
import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { corePorts } from '../core/core-ports.js';
import { notOpen } from '../core/store-failure.js';
import { type CoreDatabase } from '../core/tables.js';
import { assertSchema, pendingMigrations, type StoredVersion } from '../sql/assert-schema.js';
import { dialectOf } from '../sql/dialects.js';
import { probeStatements } from '../sql/probe.js';
import { runMigrations } from '../sql/run-migrations.js';
import { asStartError } from '../sql/start-checks.js';
import { placeOf, type SqlPlace } from '../sql/sql-place.js';
import { type SqlStoreOptions } from '../sql/sql-store.options.js';
import { FileLock, type OpenDatabase } from './file-lock.js';
import { SqliteDatabase } from './sqlite-database.js';
import { SQLITE_MIGRATIONS } from './sqlite-migrations.js';
import { asStoreError, retryWhileBusy } from './sqlite-errors.js';
import { sqliteMessages } from './sqlite.messages.js';

type SqliteOptions = Extract<DataSourceOptions, { readonly type: 'better-sqlite3' }>;

/** How long startup waits for a stopping worker of the same file, unless the caller says so. */
const WORKER_LOCK_TIMEOUT_MS = 5000;
const MIGRATION_LOCK_TIMEOUT_MS = 60_000;
/** The codes of errors of SQLite and of the file system. */
const OF_FILES = /^(SQLITE_|E(?!RR_))/;
/** In pages. A larger write-ahead log needs fewer checkpoints between commits. */
const WAL_AUTOCHECKPOINT = 4000;

/**
 * The store in a SQLite file. TypeORM creates the schema. All other statements use a separate connection, because
 * concurrent transactions in TypeORM's driver share one connection and mix.
 */
export class SqliteAdapter {
  private readonly logger = new Logger('AgentSessions');
  private readonly file: string;
  private readonly place: SqlPlace;
  /** The lock of the worker, and those that are waited for. */
  private readonly workerLocks = new Set<FileLock>();
  private connection: BetterSqlite3.Database | null = null;
  private database: SqliteDatabase | null = null;

  private constructor(
    private readonly dataSource: SqliteOptions,
    private readonly options: SqlStoreOptions,
  ) {
    this.place = placeOf(dataSource, options.tablePrefix);
    const { database } = dataSource;
    if (typeof database !== 'string' || database === '' || database === ':memory:' || database.startsWith('file:')) {
      throw new SessionsConfigurationError(sqliteMessages.notAFile(database));
    }
    this.file = resolve(database);
  }

  static create(dataSource: SqliteOptions, options: SqlStoreOptions): SessionsAdapter {
    const adapter = new SqliteAdapter(dataSource, options);
    return {
      ...corePorts(adapter.lazyDatabase()),
      shared: false,
      system: dialectOf(dataSource).system,
      label: `SQLite ${adapter.file}`,
      init: () => adapter.init(),
      ping: () => adapter.ping(),
      probe: async () => adapter.opened().tryOut(probeStatements(SQLITE_MIGRATIONS)),
      pendingMigrations: () => adapter.pendingMigrations(),
      beginWork: (wait) => adapter.beginWork(wait),
      close: () => adapter.close(),
    };
  }

  private async init(): Promise<void> {
    if (this.database) return;
    const open = await this.driver();
    this.assertFile();
    const db = this.openFile(open);
    const database = new SqliteDatabase(db, this.place.prefix, this.options.busyTimeoutMs);
    try {
      await prepare(db, this.dataSource);
      await this.migrate(db, open);
      db.pragma(`synchronous = ${this.options.synchronous}`);
      db.pragma(`wal_autocheckpoint = ${WAL_AUTOCHECKPOINT}`);
      if (this.options.checkServer) await database.tryOut(probeStatements(SQLITE_MIGRATIONS));
    } catch (error) {
      db.close();
      throw asStartError(asStoreError(error), this.file);
    }
    this.connection = db;
    this.database = database;
  }

  private openFile(open: OpenDatabase): BetterSqlite3.Database {
    try {
      if (!existsSync(dirname(this.file))) mkdirSync(dirname(this.file), { recursive: true });
      return open(this.file);
    } catch (cause) {
      const { code, message } = cause as { readonly code?: unknown; readonly message: string };
      // The driver loads its native addon here, too.
      if (typeof code !== 'string' || !OF_FILES.test(code)) throw cause;
      throw new SessionsConfigurationError(sqliteMessages.notOpened(this.file, message), { cause });
    }
  }

  /** Runs the migrations. Processes that start at once run one after the other, and only the first one migrates. */
  private async migrate(db: BetterSqlite3.Database, open: OpenDatabase): Promise<void> {
    const lock = new FileLock(open, `${this.file}-migration`);
    if (!(await lock.acquire(MIGRATION_LOCK_TIMEOUT_MS))) {
      throw new StoreUnavailableError(sqliteMessages.migratedElsewhere(this.file), { maybeApplied: false });
    }
    try {
      // Runs first, because readers would block the migrations in the default journal mode.
      await retryWhileBusy(() => db.pragma('journal_mode = WAL'), this.options.busyTimeoutMs);
      await runMigrations(this.dataSource, SQLITE_MIGRATIONS, this.options.tablePrefix);
      await assertSchema(async (sql) => versionsIn(db, sql), this.place, SQLITE_MIGRATIONS);
    } finally {
      lock.release();
    }
  }

  private async pendingMigrations(): Promise<readonly string[]> {
    const { connection } = this;
    if (!connection) return [];
    return pendingMigrations(async (sql) => versionsIn(connection, sql), this.place, SQLITE_MIGRATIONS);
  }

  private async beginWork({ waitMs } = { waitMs: WORKER_LOCK_TIMEOUT_MS }): Promise<void> {
    const lock = new FileLock(await this.driver(), `${this.file}-worker`);
    // Closed since. Nothing would release the lock.
    this.opened();
    // `close` ends the wait.
    this.workerLocks.add(lock);
    const seconds = Math.round(waitMs / 1000);
    const acquired = await lock.acquire(waitMs, () =>
      this.logger.log(sqliteMessages.waitsForWorker(this.file, seconds)),
    );
    // The previous holder of the lock is gone, so its turns are free immediately.
    if (acquired || !this.database) return this.opened().lapseAll();
    this.workerLocks.delete(lock);
    throw new SessionsConfigurationError(sqliteMessages.otherWorker(this.file, seconds));
  }

  private async ping(): Promise<void> {
    await this.opened().read((tx) => tx.now);
  }

  private async close(): Promise<void> {
    await this.database?.close();
    this.database = null;
    this.connection = null;
    for (const lock of this.workerLocks) lock.release();
    this.workerLocks.clear();
  }

  private opened(): SqliteDatabase {
    if (this.database) return this.database;
    throw notOpen(`SQLite store ${this.file}`);
  }

  /** Lets the ports exist before the file is open. They reject with a typed error before that and after close. */
  private lazyDatabase(): CoreDatabase {
    return {
      write: async (work) => this.opened().write(work),
      read: async (work) => this.opened().read(work),
      onChanged: (listener) => this.opened().onChanged(listener),
    };
  }

  private assertFile(): void {
    if (!this.dataSource.fileMustExist || existsSync(this.file)) return;
    throw new SessionsConfigurationError(sqliteMessages.missingFile(this.file));
  }

  /** Returns the driver of the DataSource, or better-sqlite3. */
  private async driver(): Promise<OpenDatabase> {
    const Driver: typeof BetterSqlite3 =
      (this.dataSource.driver as typeof BetterSqlite3 | undefined) ??
      (await loadPeer('better-sqlite3', () => import('better-sqlite3'))).default;
    const { nativeBinding } = this.dataSource;
    return (file, options) =>
      new Driver(file, { ...options, ...(nativeBinding === undefined ? {} : { nativeBinding }) });
  }
}

/** Prepares the store's connection as TypeORM prepares its own, and then applies the settings that the store needs. */
async function prepare(db: BetterSqlite3.Database, { key, prepareDatabase }: SqliteOptions): Promise<void> {
  // SQLCipher requires the key before any other statement.
  if (key) db.pragma(`key = ${JSON.stringify(key)}`);
  await prepareDatabase?.(db);
  db.defaultSafeIntegers(false);
  // Short, because this wait blocks the event loop. Longer waits are asynchronous.
  db.pragma('busy_timeout = 10');
}

function versionsIn(db: BetterSqlite3.Database, sql: string): StoredVersion[] {
  return db.prepare<[], StoredVersion>(sql).all();
}
