import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { SessionsConfigurationError, SessionStore, type SessionsAdapter } from 'nestjs-agent-sessions';
import { sessionsMigrations, typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import { DataSource } from 'typeorm';
import { rejection } from '../support/running-application.js';
import { sqliteAdapter, temporaryFolder } from '../support/stores.js';

describe('the schema of the SQLite store', () => {
  let file: string;

  beforeEach(() => {
    file = join(temporaryFolder(), 'sessions.db');
  });

  it('STA-03 the tables have the table prefix', async () => {
    await migrated('chat_');

    expect(tables()).toContain('chat_turn');
    expect(tables().filter((name) => !name.startsWith('chat_'))).toEqual([]);
  });

  it('STA-03 the last migration can be reverted and run again', async () => {
    await migrated();
    const made = tables();
    const dataSource = await connect({
      migrations: sessionsMigrations(),
      migrationsTableName: 'agent_migrations',
    });

    await dataSource.undoLastMigration();
    expect(tables()).toEqual(['agent_migrations']);

    await dataSource.runMigrations();
    expect(tables()).toEqual(made);
    await dataSource.destroy();
  });

  it('STA-03 an open file is not migrated twice', async () => {
    await migrated();
    await migrated();

    expect(inFile((db) => db.prepare('SELECT COUNT(*) AS count FROM agent_migrations').get())).toEqual({ count: 1 });
  });

  it('NST-23 rejects a file that a newer version of the package has changed incompatibly', async () => {
    await migrated();
    inFile((db) => db.exec('INSERT INTO agent_schema VALUES (9, 8)'));

    await expect(adapterOf('agent_').init?.()).rejects.toThrow(/migration 9.*too new.*Install a newer version/s);
  });

  it('NST-23 accepts a file that a newer version of the package has changed compatibly', async () => {
    await migrated();
    inFile((db) => db.exec('INSERT INTO agent_schema VALUES (9, 1)'));

    await expect(migrated()).resolves.toBeUndefined();
  });

  it('STA-03 two prefixes in one file are independent', async () => {
    const [first, second] = [adapterOf('a_'), adapterOf('b_')];
    await first.init?.();
    await second.init?.();
    const [a, b] = [new SessionStore(first.sessions), new SessionStore(second.sessions)];

    await a.create({ id: 's', userId: 'ann' });
    await expect(b.get('s')).resolves.toBeNull();
    await b.create({ id: 's', userId: 'ben' });

    expect(await a.get('s')).toMatchObject({ userId: 'ann' });
    expect(await b.get('s')).toMatchObject({ userId: 'ben' });
    await Promise.all([first.close?.(), second.close?.()]);
  });

  it('NST-05 uses a DataSource of the application, and leaves it open', async () => {
    const dataSource = await connect({});
    const adapter = typeormAdapter({ dataSource });
    await adapter.init?.();
    await new SessionStore(adapter.sessions).create({ id: 's', userId: 'ann' });

    expect(await dataSource.query('SELECT user_id FROM agent_session')).toEqual([{ user_id: 'ann' }]);
    await adapter.close?.();

    expect(dataSource.isInitialized).toBe(true);
    expect(await dataSource.query('SELECT COUNT(*) AS count FROM agent_session')).toEqual([{ count: 1 }]);
    await dataSource.destroy();
  });

  it('NST-05 creates the folder of the file if it is missing', async () => {
    file = join(temporaryFolder(), 'not', 'there', 'sessions.db');
    await migrated();

    expect(tables()).toContain('agent_session');
  });

  it('DAY-02 names a file that cannot be opened, and the cure', async () => {
    const folder = temporaryFolder();
    const inAFile = join(import.meta.filename, 'data', 'chat.db');
    for (const [path, reason] of [
      [folder, 'unable to open database file'],
      [inAFile, 'ENOTDIR'],
    ] as const) {
      const error = await rejection(sqliteAdapter(path).init!(), SessionsConfigurationError);
      expect(error.message).toContain(`the SQLite database ${path} could not be opened: ${reason}`);
      expect(error.message).toContain('It must be a file');
    }
  });

  it('DAY-02 names a file that is not a database', async () => {
    writeFileSync(file, 'x'.repeat(4096));
    const { message } = await rejection(sqliteAdapter(file).init!(), SessionsConfigurationError);
    expect(message).toContain('file is not a database. Restore the file from a backup.');
    expect(message).toMatch(new RegExp(`The file: ${file}\\.$`));
  });

  it('NST-05 waits for an application that reads a file in the older journal mode', async () => {
    const reader = new Database(file);
    reader.exec('CREATE TABLE other (id); BEGIN; SELECT * FROM other');
    reader.prepare('SELECT * FROM other').all();
    const init = migrated();
    setTimeout(() => reader.exec('COMMIT'), 200);

    await expect(init).resolves.toBeUndefined();
    reader.close();
  });

  function adapterOf(tablePrefix: string): SessionsAdapter {
    return typeormAdapter({ dataSource: { type: 'better-sqlite3', database: file }, tablePrefix });
  }

  async function migrated(tablePrefix = 'agent_'): Promise<void> {
    const adapter = adapterOf(tablePrefix);
    await adapter.init?.();
    await adapter.close?.();
  }

  function connect(options: Partial<ConstructorParameters<typeof DataSource>[0]>): Promise<DataSource> {
    return new DataSource({ type: 'better-sqlite3', database: file, ...(options as object) }).initialize();
  }

  function inFile<T>(work: (db: Database.Database) => T): T {
    const db = new Database(file);
    try {
      return work(db);
    } finally {
      db.close();
    }
  }

  function tables(): string[] {
    const rows = inFile((db) =>
      db
        .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'sqlite_sequence' ORDER BY name")
        .all(),
    ) as { name: string }[];
    return rows.map(({ name }) => name);
  }
});
