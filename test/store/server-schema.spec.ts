import { randomUUID } from 'node:crypto';
import { SessionsConfigurationError, SessionStore, type SessionsAdapter } from 'nestjs-agent-sessions';
import { sessionsMigrations, typeormAdapter, type TypeormAdapterOptions } from 'nestjs-agent-sessions/typeorm';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { turnRequest } from '../support/ledger-requests.js';
import { describeSqlServers } from '../support/servers.js';

describeSqlServers('the schema on a server', ({ type, url }) => {
  const serializable = { postgres: { options: '-c default_transaction_isolation=serializable' }, mysql: {} }[type];
  let tablePrefix: string;
  const open: (SessionsAdapter | DataSource)[] = [];

  beforeEach(() => {
    tablePrefix = `s${randomUUID().slice(0, 8)}_`;
  });

  afterEach(async () => {
    for (const one of open.splice(0)) await ('close' in one ? one.close?.() : (one as DataSource).destroy());
  });

  it('NST-23 is migrated once by ten applications that start concurrently, with any isolation level', async () => {
    const levels = [{}, serializable];
    const stores = Array.from({ length: 10 }, (_, n) =>
      adapter({ dataSource: { type, url, poolSize: 3, extra: levels[n % 2] }, migrationsRun: true }),
    );
    await Promise.all(stores.map(async (store) => store.init?.()));

    const { rows } = await names();
    expect(rows.filter((name) => name === `${tablePrefix}turn`)).toHaveLength(1);
    await new SessionStore(stores[9].sessions).create({ id: 's', userId: 'ann' });
    await expect(new SessionStore(stores[0].sessions).get('s')).resolves.toMatchObject({ userId: 'ann' });
  });

  it('NST-23 is migrated with the smallest pool', async () => {
    const store = adapter({ dataSource: { type, url, poolSize: type === 'postgres' ? 2 : 1 }, migrationsRun: true });
    await expect(store.init?.()).resolves.toBeUndefined();
  });

  it('NST-23 fails the start when it is missing, and reports what to do', async () => {
    const init = adapter().init?.();
    await expect(init).rejects.toThrow(SessionsConfigurationError);
    await expect(init).rejects.toThrow(/migration 0, and .* needs 1\. Run the migrations.*migrationsRun: true/s);
  });

  it('NST-23 fails the start when it is too new, but not when a newer one is still compatible', async () => {
    const dataSource = await migrated();
    await dataSource.query(`INSERT INTO ${tablePrefix}schema VALUES (8, 1)`);
    await expect(adapter().init?.()).resolves.toBeUndefined();

    await dataSource.query(`INSERT INTO ${tablePrefix}schema VALUES (9, 7)`);
    await expect(adapter().init?.()).rejects.toThrow(/migration 9, which is too new/);
  });

  it('NST-23 can be reverted completely, and created again', async () => {
    const dataSource = await migrated();
    const made = await names();
    await dataSource.undoLastMigration();
    expect((await names()).rows).toEqual([`${tablePrefix}migrations`]);

    await dataSource.runMigrations();
    expect(await names()).toEqual(made);
  });

  it('NST-05 works on the DataSource of the application, and leaves it open', async () => {
    const dataSource = await migrated();
    const store = adapter({ dataSource });
    await store.init?.();
    await new SessionStore(store.sessions).create({ id: 's', userId: 'ann' });
    await store.close?.();

    expect(dataSource.isInitialized).toBe(true);
    expect(await dataSource.query(`SELECT id FROM ${tablePrefix}session`)).toHaveLength(1);
  });

  it('TRN-02 gives every turn its position, with any isolation level of the application', async () => {
    const store = adapter({ dataSource: { type, url, poolSize: 8, extra: serializable }, migrationsRun: true });
    await store.init?.();
    await new SessionStore(store.sessions).create({ id: 's', userId: 'ann' });

    const accepted = await Promise.all(
      Array.from({ length: 50 }, (_, n) => store.turns.accept(turnRequest(`${tablePrefix}${n}`))),
    );

    expect(accepted.map(({ turn }) => turn.position).sort((a, b) => a - b)).toEqual([...Array(51).keys()].slice(1));
  });

  it('NST-23 is completed after a migration that was interrupted', async () => {
    const dataSource = await migrated();
    if (type === 'mysql') {
      // Each statement commits: the last tables, and TypeORM's record, may be missing.
      await dataSource.query(`DROP TABLE ${tablePrefix}lease, ${tablePrefix}tombstone`);
      await dataSource.query(`DELETE FROM ${tablePrefix}migrations`);
    } else await dataSource.undoLastMigration();
    const store = adapter({ migrationsRun: true });
    await store.init?.();

    expect(await store.leases.acquire('job', 'me', 1000)).not.toBeNull();
    expect(await store.pendingMigrations?.()).toEqual([]);
  });

  if (type === 'postgres') {
    it('NST-23 is created in the schema of the DataSource', async () => {
      const schema = `chat_${tablePrefix}`;
      await (await connect({})).query(`CREATE SCHEMA ${schema}`);
      const store = adapter({ dataSource: { type, url, schema }, migrationsRun: true });
      await store.init?.();
      await new SessionStore(store.sessions).create({ id: 's', userId: 'ann' });
      await store.turns.accept(turnRequest(randomUUID()));

      const application = await connect({});
      expect(await application.query(`SELECT id FROM ${schema}.${tablePrefix}turn`)).toHaveLength(1);
    });
  }

  function adapter(options: Partial<TypeormAdapterOptions> = {}): SessionsAdapter {
    const store = typeormAdapter({ dataSource: { type, url, poolSize: 3 }, tablePrefix, ...options });
    open.push(store);
    return store;
  }

  async function connect(options: Partial<DataSourceOptions>): Promise<DataSource> {
    const dataSource = await new DataSource({ type, url, ...options } as DataSourceOptions).initialize();
    open.push(dataSource);
    return dataSource;
  }

  async function migrated(): Promise<DataSource> {
    const migrations = sessionsMigrations(tablePrefix);
    const dataSource = await connect({ migrations, migrationsTableName: `${tablePrefix}migrations` });
    await dataSource.runMigrations();
    return dataSource;
  }

  /** Returns the tables and functions with the prefix. */
  async function names(): Promise<{ rows: string[] }> {
    const dataSource = await connect({});
    const tables = `SELECT table_name AS name FROM information_schema.tables WHERE table_name LIKE '${tablePrefix}%'`;
    const functions = `SELECT routine_name AS name FROM information_schema.routines WHERE routine_name LIKE '${tablePrefix}%'`;
    const found: { name: string }[] = [];
    for (const sql of [tables, functions]) found.push(...(await dataSource.query<{ name: string }[]>(sql)));
    return { rows: found.map(({ name }) => name).sort() };
  }
});
