import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { SessionStore, type SessionsAdapter } from 'nestjs-agent-sessions';
import { type AtomicSessionStoreAdapter } from 'nestjs-agent-sessions/adapter';
import { sessionsEntities, typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import { DataSource, type DataSourceOptions, EntitySchema, MoreThan } from 'typeorm';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { SQL_SERVERS } from '../support/servers.js';
import { temporaryFolder } from '../support/stores.js';

const TABLE_PREFIX = `e${randomUUID().slice(0, 8)}_`;

const DATABASES: readonly (readonly [name: string, options: () => DataSourceOptions])[] = [
  ['sqlite', () => ({ type: 'better-sqlite3', database: join(temporaryFolder(), 'sessions.db') })],
  ...SQL_SERVERS.map(({ name, type, url }) => [name, () => ({ type, url, poolSize: 4 })] as const),
];

/** Tables of the migrations, and tables that only MySQL has, for its indexes and locks. */
const NOT_IN_ENTITIES = [
  `${TABLE_PREFIX}migrations`,
  `${TABLE_PREFIX}slot`,
  'live_since',
  'expired_since',
  'is_open',
  'events_until',
];

describe.each(DATABASES)('the entities: %s', (_, options) => {
  const entities = sessionsEntities(TABLE_PREFIX);
  const ofTheApplication = new EntitySchema({
    name: `${TABLE_PREFIX}order`,
    columns: { id: { type: 'int', primary: true } },
  });
  let store: SessionsAdapter;
  let dataSource: DataSource;
  let changesBefore: string[];

  beforeAll(async () => {
    const dataSourceOptions = options();
    dataSource = await new DataSource({
      ...dataSourceOptions,
      entities: [...entities, ofTheApplication],
    }).initialize();
    changesBefore = await changes();
    store = typeormAdapter({ dataSource: dataSourceOptions, tablePrefix: TABLE_PREFIX, migrationsRun: true });
    await store.init?.();
  });

  afterAll(async () => {
    await store.close?.();
    await dataSource.destroy();
  });

  it('NST-23 an application generates migrations of its own tables only, before and after our migrations', async () => {
    const ownOnly = [expect.stringMatching(/CREATE TABLE.*_order\W/)];

    expect(changesBefore).toEqual(ownOnly);
    expect(await changes()).toEqual(ownOnly);
  });

  it('NST-23 match the tables of the migrations, column by column', async () => {
    const described = entities.flatMap(({ options: { name, columns } }) =>
      Object.values(columns).map((column) => columnText(`${name}.${column?.name}`, column?.nullable, column?.primary)),
    );

    expect(await columnsMade()).toEqual(described.sort());
  });

  it('NST-23 read every table: counters and times as numbers, other columns as strings', async () => {
    await fillEveryTable(store);

    for (const { options: entity } of entities) {
      const [row] = await dataSource.getRepository<Record<string, unknown>>(entity.name).find();
      expect(Object.keys(row ?? {})).toEqual(Object.keys(entity.columns));
      for (const [property, column] of Object.entries(entity.columns)) {
        const types = [column?.type === 'bigint' ? 'number' : 'string', ...(column?.nullable ? ['null'] : [])];
        expect(types).toContain(row[property] === null ? 'null' : typeof row[property]);
      }
    }
  });

  it('NST-23 find rows by their columns', async () => {
    const sessions = new SessionStore(store.sessions);
    const { id, createdAt } = await sessions.create({ userId: 'Zoë 🙂', initialSurfaceId: 'phone' });

    const found = await dataSource.getRepository(`${TABLE_PREFIX}session`).findBy({
      userId: 'Zoë 🙂',
      createdAt: MoreThan(Date.parse(createdAt) - 1),
    });

    expect(found).toMatchObject([{ id, state: 'created', createdAt: Date.parse(createdAt), surfaces: '["phone"]' }]);
  });

  async function changes(): Promise<string[]> {
    const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
    return upQueries.map(({ query }) => query);
  }

  /** Returns `table.column`, with `?` if it is nullable and `key` if it is part of the primary key. */
  async function columnsMade(): Promise<string[]> {
    const rows = await dataSource.query<{ of: string; name: string; nullable: unknown; is_key: unknown }[]>(
      COLUMNS[dataSource.options.type as keyof typeof COLUMNS],
    );
    return rows
      .filter(({ of, name }) => !NOT_IN_ENTITIES.includes(of) && !NOT_IN_ENTITIES.includes(name))
      .map(({ of, name, nullable, is_key }) => columnText(`${of}.${name}`, Boolean(nullable), Boolean(is_key)))
      .sort();
  }
});

async function fillEveryTable({ sessions, turns, events, checkpoints, conversations, state, leases }: SessionsAdapter) {
  const store = new SessionStore(sessions);
  await store.create({ id: 's', userId: 'ann', initialSurfaceId: 'web' });
  await store.create({ id: 'erased', userId: 'ann' });
  await (sessions as AtomicSessionStoreAdapter).erase('erased');
  await turns.accept(turnRequest('turn'));
  const claimed = await turns.claim('s', claimRequest('worker'));
  if (!claimed) throw new Error('Nothing was claimed.');
  await turns.saveStep(claimed.hold, {
    kind: 'step' as const,
    iteration: 0,
    intent: 'answer',
    parent: '',
    name: 'step',
    key: 0,
    value: 1,
  });
  const event = { type: 'delta', data: 'a' };
  await events.append(claimed.hold, { number: 1, events: [event], restart: event }, 1000);
  await turns.signal('turn', 'go', 1);
  const checkpoint = { orchestrator: 'desk', sessionId: 's', turnIndex: 0, state: {}, lastRoute: [], signature: '' };
  await checkpoints.append({ ...checkpoint, version: '1', summarizedThrough: 0 }, 1);
  await conversations.append('s', [{ id: 'm', role: 'user', content: 'hello' }]);
  await state.set({ namespace: 'n', scope: '', sessionId: 's', key: 'k' }, { a: 1 }, { ttlMs: 60_000 });
  await leases.acquire('sweep', 'me', 1000);
}

function columnText(name: string, nullable = false, key = false): string {
  return `${name}${nullable ? '?' : ''}${key ? ' key' : ''}`;
}

const COLUMNS_OF_FILE = `
  SELECT made.name AS of, info.name, NOT info."notnull" AS nullable, info.pk AS is_key
  FROM sqlite_master AS made, pragma_table_info(made.name) AS info
  WHERE made.type = 'table' AND made.name LIKE '${TABLE_PREFIX}%'`;

const COLUMNS_OF_POSTGRES = `
  SELECT of.table_name AS of, of.column_name AS name, CASE of.is_nullable WHEN 'YES' THEN 1 END AS nullable, (
    SELECT 1 FROM information_schema.key_column_usage AS part
    WHERE part.table_schema = of.table_schema AND part.table_name = of.table_name AND part.column_name = of.column_name
      AND part.constraint_name LIKE '%pkey'
  ) AS is_key
  FROM information_schema.columns AS of WHERE of.table_name LIKE '${TABLE_PREFIX}%'`;

// Joins of its information schema read every table of the server, and other tests create many.
const COLUMNS_OF_MYSQL = `
  SELECT table_name AS of, column_name AS name, CASE is_nullable WHEN 'YES' THEN 1 END AS nullable,
    CASE column_key WHEN 'PRI' THEN 1 END AS is_key
  FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name LIKE '${TABLE_PREFIX}%'`;

const COLUMNS = { 'better-sqlite3': COLUMNS_OF_FILE, postgres: COLUMNS_OF_POSTGRES, mysql: COLUMNS_OF_MYSQL };
