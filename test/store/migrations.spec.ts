import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SessionStore, type SessionsAdapter } from 'nestjs-agent-sessions';
import { type TurnHold } from 'nestjs-agent-sessions/adapter';
import { typeormAdapter, type TypeormAdapterOptions } from 'nestjs-agent-sessions/typeorm';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { MYSQL_MIGRATIONS } from '../../lib/store/mysql/mysql-migrations.js';
import { POSTGRES_MIGRATIONS } from '../../lib/store/postgres/postgres-migrations.js';
import { type Migration, migrationClasses } from '../../lib/store/sql/migrations.js';
import { placeOf, type SqlPlace } from '../../lib/store/sql/sql-place.js';
import { TABLES } from '../../lib/store/sql/columns.js';
import { SQLITE_MIGRATIONS } from '../../lib/store/sqlite/sqlite-migrations.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { describeSqlServers } from '../support/servers.js';
import { sqliteOptions } from '../support/stores.js';
import { useEverything } from '../support/use-everything.js';

describe('migrations', () => {
  // Written by: sha256sum lib/store/*/migrations/*/* > test/store/fixtures/migrations.sha256
  // Only for a migration that has not been released.
  const checksums = readFileSync('test/store/fixtures/migrations.sha256', 'utf8');

  it('NST-23 the files of a released migration never change', () => {
    const files = ['mysql', 'postgres', 'sqlite'].flatMap((dialect) => {
      const folder = join('lib/store', dialect, 'migrations');
      return readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ parentPath, name }) => join(parentPath, name))
        .sort();
    });
    const lines = files.map((file) => `${createHash('sha256').update(readFileSync(file)).digest('hex')}  ${file}\n`);
    expect(lines.join('')).toBe(checksums);
  });

  it('NST-23 every dialect has the same migrations', () => {
    const [sqlite, postgres, mysql] = [SQLITE_MIGRATIONS, POSTGRES_MIGRATIONS, MYSQL_MIGRATIONS].map((migrations) =>
      migrations.map(({ name, usableFrom }) => ({ name, usableFrom })),
    );
    expect(postgres).toEqual(sqlite);
    expect(mysql).toEqual(sqlite);
  });
});

describe('a second migration of a filled database: sqlite', () => {
  testSecondMigration(sqliteOptions, SQLITE_MIGRATIONS);
});

describeSqlServers('a second migration of a filled database', ({ type, url }) => {
  testSecondMigration(
    () => ({ dataSource: { type, url, poolSize: 3 }, migrationsRun: true }),
    { postgres: POSTGRES_MIGRATIONS, mysql: MYSQL_MIGRATIONS }[type],
  );
});

/** Adds a column to every table that the running version does not know. */
const SECOND: Migration = {
  name: 'AddColumns1763683300000',
  usableFrom: 1,
  up: Object.keys(TABLES).map((table) => `ALTER TABLE {${table}} ADD COLUMN since_second integer;`),
  down: Object.keys(TABLES).map((table) => `ALTER TABLE {${table}} DROP COLUMN since_second;`),
};

function testSecondMigration(options: () => TypeormAdapterOptions, first: readonly Migration[]): void {
  let adapter: SessionsAdapter;
  let dataSource: DataSource;
  let place: SqlPlace;

  beforeEach(async () => {
    const tablePrefix = `m${randomBytes(6).toString('hex')}_`;
    const given = { ...options(), tablePrefix };
    adapter = typeormAdapter(given);
    await adapter.init?.();
    const migrations = [...first, SECOND];
    dataSource = await new DataSource({
      ...(given.dataSource as DataSourceOptions),
      migrations: migrationClasses(
        migrations.map(({ name }) => name),
        tablePrefix,
        () => migrations,
      ),
      migrationsTableName: `${tablePrefix}migrations`,
    }).initialize();
    place = placeOf(dataSource.options, tablePrefix);
  });

  afterEach(async () => {
    await dataSource.destroy();
    await adapter.close?.();
  });

  it('NST-23 keeps every row, and the running version continues to work', async () => {
    const hold = await fill(adapter);
    const before = await rows();

    expect((await dataSource.runMigrations()).map(({ name }) => name)).toEqual([SECOND.name]);
    const after = await rows();
    expect(Object.keys(after)).toEqual(Object.keys(before));
    for (const [table, found] of Object.entries(before)) {
      expect(after[table]).toEqual(found.map((row) => ({ ...row, since_second: null })));
    }

    const settlement = { status: 'completed' as const, messages: [], keepCheckpoints: 'all' as const };
    expect(await adapter.turns.settle(hold, settlement)).toMatchObject({ turn: { status: 'completed' } });
    await useEverything(adapter);
  });

  it('NST-23 is reverted without data loss', async () => {
    const hold = await fill(adapter);
    const before = await rows();
    await dataSource.runMigrations();
    await dataSource.undoLastMigration();

    expect(await rows()).toEqual(before);
    expect(await adapter.turns.renew(hold, 60_000)).toEqual({});
  });

  /** Reads every table except the table of migrations. */
  async function rows(): Promise<Record<string, object[]>> {
    const found: Record<string, object[]> = {};
    for (const table of Object.keys(TABLES)) {
      if (table !== 'schema') found[table] = await dataSource.query<object[]>(place.fill(`SELECT * FROM {${table}}`));
    }
    return found;
  }
}

/** Creates a settled turn with all its data, and a running one. */
async function fill({ sessions, turns, events, state, leases }: SessionsAdapter): Promise<TurnHold> {
  await new SessionStore(sessions).create({ id: 'before', userId: 'ann', initialSurfaceId: 'web' });
  for (const id of ['settled', 'running']) await turns.accept(turnRequest(id, { sessionId: 'before' }));
  const claimed = await turns.claim('before', claimRequest('worker'));
  if (!claimed) throw new Error('Nothing was claimed.');
  const { hold } = claimed;
  const step = { kind: 'step' as const, iteration: 0, intent: 'answer', parent: '', name: 'look', key: 0 };
  await turns.saveStep(hold, { ...step, value: { found: 7 } });
  await turns.signal(hold.turnId, 'go', { sure: true });
  const restart = { type: 'attempt', data: null };
  await events.append(hold, { number: 1, events: [{ type: 'text', data: 'hi' }], restart }, 600_000);
  const { next } = await turns.settle(
    hold,
    {
      status: 'completed',
      messages: [{ id: 'answer', role: 'assistant', content: 'Order 7 is shipped.' }],
      checkpoint: {
        orchestrator: 'desk',
        sessionId: 'before',
        turnIndex: 0,
        state: { order: 7 },
        lastRoute: [],
        signature: '',
        version: '1',
        summarizedThrough: 0,
      },
      keepCheckpoints: 'all',
    },
    claimRequest('worker'),
  );
  await state.set({ namespace: 'n', scope: 'c', sessionId: 'before', key: 'k' }, 'kept');
  await leases.acquire('sweep-before', 'me', 600_000);
  if (!next) throw new Error('The next turn was not claimed.');
  return next.hold;
}
