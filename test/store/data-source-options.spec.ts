import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { type SessionsAdapter, SessionsConfigurationError, SessionStore } from 'nestjs-agent-sessions';
import {
  sessionsEntities,
  sessionsMigrations,
  typeormAdapter,
  type TypeormAdapterOptions,
} from 'nestjs-agent-sessions/typeorm';
import { DataSource, type DataSourceOptions, DefaultNamingStrategy } from 'typeorm';
import { turnRequest } from '../support/ledger-requests.js';
import { rejection } from '../support/running-application.js';
import { describePostgres, POSTGRES, SQL_SERVERS } from '../support/servers.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const DATABASES: readonly (readonly [name: string, options: () => DataSourceOptions])[] = [
  ['sqlite', sqliteFile],
  ...SQL_SERVERS.map(({ name, type, url }) => [name, () => ({ type, url, poolSize: 3 })] as const),
];

class UpperCaseTables extends DefaultNamingStrategy {
  override tableName(className: string, customName: string | undefined): string {
    return super.tableName(className, customName).toUpperCase();
  }
}

class CamelCaseColumns extends DefaultNamingStrategy {
  override columnName(propertyName: string): string {
    return propertyName;
  }
}

const opened: (SessionsAdapter | DataSource)[] = [];

afterEach(async () => {
  for (const each of opened.splice(0)) await ('close' in each ? each.close?.() : (each as DataSource).destroy());
});

describe.each(DATABASES)('the options of a DataSource: %s', (_, options) => {
  const place = (): { entityPrefix: string; tablePrefix: string } => ({
    entityPrefix: `x${randomBytes(4).toString('hex')}_`,
    tablePrefix: 'a_',
  });

  it('FIX-67 entityPrefix comes before tablePrefix, in the store and in its entities', async () => {
    const { entityPrefix, tablePrefix } = place();
    const dataSource = { ...options(), entityPrefix };
    const store = await open({ dataSource, tablePrefix, migrationsRun: true });
    await use(store);
    await open({ dataSource, tablePrefix });

    const application = await connect({ ...dataSource, entities: sessionsEntities(tablePrefix) });
    expect(await application.getRepository('a_session').findBy({ userId: 'ann' })).toHaveLength(1);
    expect(await application.query(`SELECT id FROM ${entityPrefix}a_turn`)).toHaveLength(1);
    expect(await application.query(`SELECT name FROM ${entityPrefix}a_migrations`)).toHaveLength(1);
  });

  it('FIX-67 applications with another entityPrefix have their own tables', async () => {
    const base = options();
    for (const { entityPrefix, tablePrefix } of [place(), place()]) {
      await use(await open({ dataSource: { ...base, entityPrefix }, tablePrefix, migrationsRun: true }));
    }
  });

  it.each([
    [
      'tables',
      new UpperCaseTables(),
      /names the table of a_session ".*A_SESSION", and the store names it ".*a_session"/,
    ],
    ['columns', new CamelCaseColumns(), /the column a_session\.userId "userId", and the store names it "user_id"/],
  ])('FIX-67 a naming strategy that renames %s of the entities fails the start', async (_, namingStrategy, message) => {
    const { entityPrefix, tablePrefix } = place();
    const given = { ...options(), entityPrefix, namingStrategy };
    const dataSource = await connect({ ...given, entities: sessionsEntities(tablePrefix) });
    const store = typeormAdapter({ dataSource, tablePrefix, migrationsRun: true });
    expect((await rejection(store.init!(), SessionsConfigurationError)).message).toMatch(message);
    expect(dataSource.isInitialized).toBe(true);

    // Without the entities, nothing is named wrongly.
    await use(await open({ dataSource: await connect(given), tablePrefix, migrationsRun: true }));
  });

  it('FIX-67 dropSchema is refused, unless the application has already opened the DataSource', async () => {
    const { entityPrefix, tablePrefix } = place();
    const dataSource = { ...options(), entityPrefix, dropSchema: true };
    expect(() => typeormAdapter({ dataSource })).toThrow(/dropSchema is not allowed\. It would delete.*Received: true/);
    expect(() => typeormAdapter({ dataSource: new DataSource(dataSource) })).toThrow(SessionsConfigurationError);
    if (dataSource.type !== 'better-sqlite3') return;

    await use(await open({ dataSource: await connect(dataSource), tablePrefix }));
  });
});

describePostgres('the options of a DataSource', () => {
  it('FIX-67 entities are read in the schema of the DataSource', async () => {
    const schema = `x${randomBytes(4).toString('hex')}`;
    await (await connect({ type: 'postgres', url: POSTGRES.url })).query(`CREATE SCHEMA ${schema}`);
    const options = { type: 'postgres', url: POSTGRES.url, schema, entityPrefix: 'app_' } as const;
    const migrations = { migrations: sessionsMigrations(), migrationsTableName: 'app_agent_migrations' };
    const dataSource = await connect({ ...options, ...migrations, entities: sessionsEntities() });
    await dataSource.runMigrations();

    await use(await open({ dataSource }));
    expect(await dataSource.getRepository('agent_session').count()).toBe(1);
    expect(await dataSource.query(`SELECT id FROM ${schema}.app_agent_session`)).toHaveLength(1);
  });
});

describe('the options of a DataSource for better-sqlite3', () => {
  it.each<[string, object, RegExp]>([
    ['a read-only connection', { readonly: true }, /dataSource\.readonly is not allowed\. .*Received: true\./],
    ['another journal mode', { enableWAL: false }, /dataSource\.enableWAL is not allowed\. .*WAL.*Received: false\./],
    ['an entityPrefix that is SQL', { entityPrefix: 'a"; --' }, /entityPrefix and tablePrefix together must be/],
    ['an entityPrefix that is too long', { entityPrefix: 'a'.repeat(31) }, /at most 31\. Received: "a{31}agent_"\./],
  ])('FIX-67 rejects %s', (_, options, message) => {
    const make = () => typeormAdapter({ dataSource: { ...sqliteFile(), ...options } });
    expect(make).toThrow(SessionsConfigurationError);
    expect(make).toThrow(message);
  });

  it('FIX-67 opens the file with its driver, native binding and key, and prepares the connection', async () => {
    const calls: string[] = [];
    class Driver extends Database {
      constructor(file: string, options: Database.Options) {
        super(file, options);
        calls.push(`open ${options.nativeBinding}`);
      }

      override pragma(source: string, options?: Database.PragmaOptions): unknown {
        calls.push(source);
        return super.pragma(source, options);
      }
    }
    // TypeORM 0.3 calls the driver without `new`, which better-sqlite3 allows.
    const driver = new Proxy(Driver, {
      apply: (target, _, args: ConstructorParameters<typeof Driver>) => new target(...args),
    });
    const nativeBinding = createRequire(import.meta.url).resolve('better-sqlite3/build/Release/better_sqlite3.node');
    const prepared: Database.Database[] = [];
    const prepareDatabase = async (db: Database.Database): Promise<void> => {
      calls.push('prepare');
      prepared.push(db);
    };
    const dataSource = { ...sqliteFile(), driver, nativeBinding, key: 'secret', prepareDatabase };
    const store = await open({ dataSource });
    await use(store);

    expect(calls.slice(0, 3)).toEqual([`open ${nativeBinding}`, 'key = "secret"', 'prepare']);
    // The store's connection, and the one of the migrations, which is closed.
    expect(prepared.map((db) => db.open)).toEqual([true, false]);
  });

  it('FIX-67 does not create a file that must exist', async () => {
    const options = { ...sqliteFile(), fileMustExist: true };
    const store = typeormAdapter({ dataSource: options });
    expect((await rejection(store.init!(), SessionsConfigurationError)).message).toContain(options.database);

    new Database(options.database).close();
    await use(await open({ dataSource: options }));
  });
});

function sqliteFile(): Extract<DataSourceOptions, { type: 'better-sqlite3' }> {
  return { type: 'better-sqlite3', database: join(temporaryFolder(), 'sessions.db') };
}

async function open(options: TypeormAdapterOptions): Promise<SessionsAdapter> {
  const store = typeormAdapter(options);
  opened.push(store);
  await store.init?.();
  return store;
}

async function connect(options: DataSourceOptions): Promise<DataSource> {
  const dataSource = await new DataSource(options).initialize();
  opened.push(dataSource);
  return dataSource;
}

/** Fails if the store already has the session. */
async function use(store: SessionsAdapter): Promise<void> {
  await new SessionStore(store.sessions).create({ id: 's', userId: 'ann' });
  await store.turns.accept(turnRequest('t'));
}
