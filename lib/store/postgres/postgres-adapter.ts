import { type DataSource, type DataSourceOptions } from 'typeorm';
import { SessionsConfigurationError } from '../../common/sessions.error.js';
import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { NotifiedTurnChanges } from '../core/notifications.js';
import { notOpen } from '../core/store-failure.js';
import { assertSchema, pendingMigrations } from '../sql/assert-schema.js';
import { openDataSource, type OpenDataSource, optionsOf } from '../sql/open-data-source.js';
import { runMigrations } from '../sql/run-migrations.js';
import { asStartError } from '../sql/start-checks.js';
import { serverLabel } from '../sql/dialects.js';
import { placeOf, type SqlPlace } from '../sql/sql-place.js';
import { type SqlStoreOptions } from '../sql/sql-store.options.js';
import { PostgresCheckpoints } from './postgres-checkpoints.js';
import { PostgresConversations } from './postgres-conversations.js';
import { PostgresDatabase } from './postgres-database.js';
import { asStoreError } from './postgres-errors.js';
import { PostgresLaneCalls } from './postgres-lane-calls.js';
import { PostgresLeases } from './postgres-leases.js';
import { POSTGRES_MIGRATIONS } from './postgres-migrations.js';
import { PostgresNotifications } from './postgres-notifications.js';
import { probePostgres } from './postgres-probe.js';
import { PostgresSessions } from './postgres-sessions.js';
import { PostgresState } from './postgres-state.js';
import { PostgresTurnEvents } from './postgres-turn-events.js';
import { PostgresTurns } from './postgres-turns.js';
import { postgresMessages } from './postgres.messages.js';

/** The store in PostgreSQL. Every operation is one call of a function that a migration created. */
export class PostgresAdapter {
  private readonly place: SqlPlace;
  private readonly database: PostgresDatabase;
  private readonly notifications: PostgresNotifications;
  private opened: OpenDataSource | null = null;

  private constructor(
    private readonly given: DataSource | DataSourceOptions,
    private readonly options: SqlStoreOptions,
  ) {
    assertPool(optionsOf(given));
    this.place = placeOf(optionsOf(given), options.tablePrefix);
    const dataSource = (): DataSource => this.dataSource();
    this.database = new PostgresDatabase(this.place, dataSource, options.operationTimeoutMs);
    this.notifications = new PostgresNotifications(this.place, dataSource, options.operationTimeoutMs);
  }

  static create(given: DataSource | DataSourceOptions, options: SqlStoreOptions): SessionsAdapter {
    const adapter = new PostgresAdapter(given, options);
    const { database, notifications } = adapter;
    const changes = new NotifiedTurnChanges(notifications);
    const laneCalls = new PostgresLaneCalls(database);
    return {
      sessions: new PostgresSessions(database),
      turns: new PostgresTurns(database, laneCalls, (turnId, turn) => changes.emit(turnId, turn)),
      changes,
      events: new PostgresTurnEvents(database, laneCalls, notifications),
      checkpoints: new PostgresCheckpoints(database),
      conversations: new PostgresConversations(database),
      state: new PostgresState(database),
      leases: new PostgresLeases(database),
      shared: true,
      system: adapter.place.dialect.system,
      label: adapter.label,
      init: () => adapter.init(),
      ping: () => adapter.ping(),
      probe: () => probePostgres(database),
      pendingMigrations: () => pendingMigrations((sql) => database.query(sql), adapter.place, POSTGRES_MIGRATIONS),
      close: () => adapter.close(),
    };
  }

  private get label(): string {
    return serverLabel(this.place.dialect, optionsOf(this.given));
  }

  private async init(): Promise<void> {
    if (this.opened) return;
    const { tablePrefix, migrationsRun, operationTimeoutMs, checkServer } = this.options;
    try {
      if (migrationsRun)
        await runMigrations(optionsOf(this.given), POSTGRES_MIGRATIONS, tablePrefix, operationTimeoutMs);
      this.opened = await openDataSource(this.given, operationTimeoutMs);
      await this.database.init(checkServer);
      await assertSchema((sql) => this.database.query(sql), this.place, POSTGRES_MIGRATIONS);
      if (checkServer) await probePostgres(this.database);
      await this.notifications.open();
    } catch (error) {
      await this.close();
      throw asStartError(asStoreError(error, true));
    }
  }

  private async ping(): Promise<void> {
    await this.database.query('SELECT 1');
  }

  private async close(): Promise<void> {
    const { opened } = this;
    if (!opened) return;
    await this.notifications.close();
    this.opened = null;
    await opened.close();
  }

  private dataSource(): DataSource {
    if (!this.opened) throw notOpen('PostgreSQL store');
    return this.opened.dataSource;
  }
}

/** Checks the pool size. One connection listens for notifications, so operations need at least one more. */
function assertPool({ poolSize, extra }: DataSourceOptions): void {
  const size = Number(poolSize ?? (extra as { readonly max?: unknown } | undefined)?.max ?? 10);
  if (size >= 2) return;
  throw new SessionsConfigurationError(postgresMessages.poolTooSmall(size));
}
