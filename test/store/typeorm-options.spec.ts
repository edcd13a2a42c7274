import { join } from 'node:path';
import { jest } from '@jest/globals';
import Database from 'better-sqlite3';
import mysql2 from 'mysql2';
import { SessionsConfigurationError, StoreUnavailableError } from 'nestjs-agent-sessions';
import { typeormAdapter, type TypeormAdapterOptions } from 'nestjs-agent-sessions/typeorm';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { newDataSource } from '../../lib/store/sql/new-data-source.js';
import { portOfNobody } from '../support/port-of-nobody.js';
import { rejection } from '../support/running-application.js';
import { temporaryFolder } from '../support/stores.js';

describe('the options of typeormAdapter', () => {
  it.each<[string, unknown, string | RegExp]>([
    ['a store in memory', { dataSource: { type: 'better-sqlite3', database: ':memory:' } }, 'memoryAdapter()'],
    ['no file', { dataSource: { type: 'better-sqlite3' } }, 'must be the path of a file'],
    ['an empty path', { dataSource: { type: 'better-sqlite3', database: '' } }, 'must be the path of a file'],
    ['a URI', { dataSource: { type: 'better-sqlite3', database: 'file:x.db?mode=memory' } }, 'the path of a file'],
    ['no DataSource', {}, 'dataSource is missing'],
    ['null', { dataSource: null }, 'dataSource is missing'],
    [
      'a DataSource',
      new DataSource({ type: 'postgres', url: 'postgres://nowhere/x' }),
      'typeormAdapter({ dataSource })',
    ],
    [
      'a pool of one',
      { dataSource: { type: 'postgres', database: 'x', poolSize: 1 } },
      /poolSize must .* Received: 1\.$/,
    ],
    ['another dialect', { dataSource: { type: 'cockroachdb', database: 'x' } }, '"cockroachdb"'],
    ['another SQLite driver', { dataSource: { type: 'sqljs', database: 'x' } }, '"sqljs"'],
    ['an undefined file', { dataSource: { type: 'better-sqlite3', database: undefined } }, 'environment variable set?'],
    [
      'an undefined URL',
      { dataSource: { type: 'postgres', url: undefined } },
      'dataSource.url is undefined. Use a URL',
    ],
    ['an empty URL', { dataSource: { type: 'mariadb', url: '' } }, 'dataSource.url is empty. Use a URL'],
    [
      'an unknown key',
      { ...file(), migrationRun: true },
      'typeormAdapter: migrationRun is not a known key. Did you mean migrationsRun? Allowed: ',
    ],
    ['an unknown key of SQLite', { ...file(), sqlite: { busyTimeout: 1 } }, 'sqlite.busyTimeout is not a known key.'],
    ['an empty prefix', { ...file(), tablePrefix: '' }, 'tablePrefix'],
    ['a prefix that is SQL', { ...file(), tablePrefix: 'a"; DROP TABLE x; --' }, 'tablePrefix'],
    ['a prefix with a line break', { ...file(), tablePrefix: 'a\n' }, 'tablePrefix'],
    ['a prefix that begins with a digit', { ...file(), tablePrefix: '1a' }, 'tablePrefix'],
    ['a prefix that is too long', { ...file(), tablePrefix: 'a'.repeat(32) }, 'tablePrefix'],
    ['no time for an operation', { ...file(), operationTimeoutMs: 0 }, /operationTimeoutMs must .* Received: 0\.$/],
    [
      'endless operations',
      { ...file(), operationTimeoutMs: Infinity },
      /operationTimeoutMs must .* Received: Infinity\.$/,
    ],
    [
      'a time that no timer has',
      { ...file(), operationTimeoutMs: 2 ** 31 },
      /operationTimeoutMs must .* Received: 2147483648\.$/,
    ],
    [
      'a time that is not a number',
      { ...file(), operationTimeoutMs: '9' },
      /operationTimeoutMs must .* Received: '9'\.$/,
    ],
    ['another synchronous', { ...file(), sqlite: { synchronous: 'OFF' } }, 'sqlite.synchronous'],
    ['a synchronous that is SQL', { ...file(), sqlite: { synchronous: 'FULL; --' } }, 'sqlite.synchronous'],
    ['a negative time-out', { ...file(), sqlite: { busyTimeoutMs: -1 } }, 'sqlite.busyTimeoutMs'],
    ['a time-out that is not a number', { ...file(), sqlite: { busyTimeoutMs: '5000' } }, 'sqlite.busyTimeoutMs'],
    ['an endless time-out', { ...file(), sqlite: { busyTimeoutMs: NaN } }, 'sqlite.busyTimeoutMs'],
  ])('NST-02 rejects %s', (_, options, named) => {
    const make = () => typeormAdapter(options as TypeormAdapterOptions);

    expect(make).toThrow(SessionsConfigurationError);
    expect(make).toThrow(named);
  });

  it.each(['postgres', 'mariadb'] as const)(
    'NST-05 NST-22 names the unreachable %s, without a password',
    async (type) => {
      const server = `127.0.0.1:${await portOfNobody()}/shop`;
      const store = typeormAdapter({ dataSource: { type, url: `${type}://desk:hunter2@${server}` } });
      const error = await rejection(store.init!(), StoreUnavailableError);
      expect(error.message).toContain(` store at ${server} could not be opened (ECONNREFUSED).`);
      expect(error.message).not.toMatch(/desk|hunter2/);
    },
  );

  it('DAY-07 connects with mysql2, because TypeORM 0.3 prefers the package mysql', async () => {
    const driverOf = async (options: DataSourceOptions): Promise<unknown> =>
      ((await newDataSource(options)).options as { readonly driver?: unknown }).driver;
    expect(await driverOf({ type: 'mariadb', database: 'shop' })).toBe(mysql2);
    const driver = { ...mysql2 };
    expect(await driverOf({ type: 'mysql', database: 'shop', driver })).toBe(driver);
  });

  it.each([
    [undefined, 2],
    ['FULL', 2],
    ['NORMAL', 1],
  ] as const)('NST-02 opens the file in WAL mode with synchronous %s', async (synchronous, level) => {
    const pragma = jest.spyOn(Database.prototype, 'pragma');
    const adapter = typeormAdapter({ ...file(), ...(synchronous ? { sqlite: { synchronous } } : {}) });
    await adapter.init?.();
    // The adapter's own connection is still open.
    const [connection] = (pragma.mock.contexts as Database.Database[]).filter(({ open }) => open);
    pragma.mockRestore();

    expect(connection.pragma('journal_mode', { simple: true })).toBe('wal');
    expect(connection.pragma('synchronous', { simple: true })).toBe(level);
    await adapter.close?.();
    expect(connection.open).toBe(false);
  });
});

function file(): Pick<TypeormAdapterOptions, 'dataSource'> {
  return { dataSource: { type: 'better-sqlite3', database: join(temporaryFolder(), 'sessions.db') } };
}
