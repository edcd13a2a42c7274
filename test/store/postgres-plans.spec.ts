import { randomBytes } from 'node:crypto';
import { jest } from '@jest/globals';
import { type SessionsAdapter, type SurfacePolicy } from 'nestjs-agent-sessions';
import {
  type AtomicSessionStoreAdapter,
  encodeCursor,
  type NewSession,
  type SurfaceRules,
} from 'nestjs-agent-sessions/adapter';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import pg from 'pg';
import { DataSource } from 'typeorm';
import { placeOf, type SqlPlace } from '../../lib/store/sql/sql-place.js';
import { fillWithSessions, MANY, USERS } from '../support/many-sessions.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { useEverything } from '../support/use-everything.js';
import { describePostgres } from '../support/servers.js';

const HOUR = 3_600_000;
/** A description, the maximum number of rows to read, and the operation. */
type Operations = [string, number, () => Promise<unknown>][];

/** Number of sessions with open turns. */
const BUSY = [MANY - 3, MANY - 2, MANY - 1].map((n) => `p-${n}`);

/** Number of documents and messages of one session. */
const DEEP = 2000;

/** Number of calls after which PostgreSQL has chosen a plan for the statements of a function. */
const CALLS = 7;

/**
 * Reads of PostgreSQL per operation among fifty thousand sessions, from its own counters: rows by index, and no
 * more than the answer needs.
 */
describePostgres('reads of the PostgreSQL store', () => {
  const tablePrefix = `plans${randomBytes(4).toString('hex')}_`;
  let dataSource: DataSource;
  let place: SqlPlace;
  let adapter: SessionsAdapter;
  let sessions: AtomicSessionStoreAdapter;
  /** A cursor after half of the active sessions. */
  let cursor: string;

  beforeAll(async () => {
    const url = process.env.TEST_POSTGRES_URL;
    if (url === undefined) throw new Error('TEST_POSTGRES_URL is not set. See CONTRIBUTING.md.');
    // One connection listens for notifications, so all statements use the other one and its transaction.
    dataSource = new DataSource({ type: 'postgres', url, poolSize: 2 });
    await dataSource.initialize();
    // Prevents keep-alive queries while trips are counted.
    adapter = typeormAdapter({ dataSource, tablePrefix, migrationsRun: true, operationTimeoutMs: 600_000 });
    sessions = adapter.sessions as AtomicSessionStoreAdapter;
    await adapter.init?.();
    place = placeOf(dataSource.options, tablePrefix);
    await fillWithSessions(dataSource, place);
    await fillSession();
    for (const sessionId of BUSY) {
      await adapter.turns.accept(turnRequest(`one-${sessionId}`, { sessionId, foreignSession: true }));
      await adapter.turns.accept(turnRequest(`two-${sessionId}`, { sessionId, foreignSession: true }));
    }
    const [middle] = await sessions.fetchMany({ surfaceId: `phone-${USERS * 1.5}` });
    cursor = encodeCursor(middle);
  }, 60_000);

  afterAll(async () => {
    await adapter.close?.();
    await dataSource.destroy();
  });

  const draft = (changes: Partial<NewSession>): NewSession => ({
    id: 'new',
    userId: 'user-7',
    workspaceId: 'space',
    attachedSurfaces: [],
    metadata: {},
    ...changes,
  });
  const by = (policy: SurfacePolicy): SurfaceRules => ({ policy, maxSurfaces: 16 });
  const oneActive = 'p-10007';
  const address = { namespace: 'n', scope: 'c', sessionId: 'p-7', key: 'k' };
  const deep = { namespace: 'deep', sessionId: 'p-7' };
  const reset = { sessionId: oneActive, epoch: 'epoch' };
  const log = { head: { namespace: 'n', scope: 'c', key: 'k' }, value: {}, ifVersion: 1 };
  const documents = { desk: [{ namespace: 'n', scope: 'c', key: 'k' }] };
  const checkpoint = {
    orchestrator: 'desk',
    sessionId: 'p-7',
    turnIndex: 1,
    state: {},
    lastRoute: [],
    signature: '',
    version: '1',
    summarizedThrough: 0,
  };

  const lost = { sessionId: 'p-7', turnId: 'turn-7', fence: 0 };
  const event = { type: 'delta', data: 1 };
  const batch = { number: 1, events: [event], restart: event };

  const finds: Operations = [
    ['a session', 1, () => sessions.fetchById('p-7')],
    ['the sessions of a user', 10, () => sessions.fetchMany({ userId: 'user-7' })],
    [
      'sessions of a user in a workspace and a state',
      10,
      () => sessions.fetchMany({ userId: 'user-7', workspaceId: 'space', state: 'active' }),
    ],
    [
      'sessions of a user in several states',
      10,
      () => sessions.fetchMany({ userId: 'user-7', state: ['active', 'created'] }),
    ],
    ['the number of sessions of a user', 10, () => sessions.count({ userId: 'user-7' })],
    ['sessions with a surface', 10, () => sessions.fetchMany({ surfaceId: 'phone-7' })],
    ['sessions of a user with a surface', 20, () => sessions.fetchMany({ userId: 'user-7', surfaceId: 'app' })],
    [
      'sessions of a user with a rare surface',
      20,
      () => sessions.fetchMany({ userId: 'user-7', surfaceId: 'phone-7' }),
    ],
    ['the latest sessions in a state', 60, () => sessions.fetchMany({ state: 'active' })],
    ['a later page of them', 60, () => sessions.fetchMany({ state: 'active', cursor })],
    ['the latest sessions in several states', 110, () => sessions.fetchMany({ state: ['active', 'created'] })],
    ['the latest of all sessions', 210, () => sessions.fetchMany({})],
    ['a later page of all sessions', 210, () => sessions.fetchMany({ cursor })],
    ['the latest sessions of a workspace', 60, () => sessions.fetchMany({ workspaceId: 'space' })],
    ['the sessions of an empty workspace', 5, () => sessions.fetchMany({ workspaceId: 'empty' })],
    ['the end of a conversation', 5, () => adapter.conversations.window('p-7', 10)],
    ['a page of a conversation', 5, () => adapter.conversations.page('p-7')],
    ['the latest checkpoint', 5, () => adapter.checkpoints.load('desk', 'p-7')],
    ['the checkpoints of a session', 5, () => adapter.checkpoints.history('desk', 'p-7')],
    ['the first sessions with checkpoints', 20, () => adapter.checkpoints.list('desk', { limit: 10 })],
    ['a document', 5, () => adapter.state.get(address)],
    ['a page of documents', 15, () => adapter.state.list({ ...deep, limit: 10 })],
    ['a page of the documents of a scope', 15, () => adapter.state.list({ ...deep, scope: 'b', limit: 10 })],
    [
      'a later page of documents',
      15,
      () => adapter.state.list({ ...deep, after: { scope: 'a', key: `k${DEEP - 5}` }, limit: 10 }),
    ],
    [
      'a later page of the documents of a scope',
      15,
      () => adapter.state.list({ ...deep, scope: 'b', after: { scope: 'b', key: `k${DEEP - 20}` }, limit: 10 }),
    ],
    ['one of many documents', 5, () => adapter.state.get({ ...deep, scope: 'b', key: 'k7' })],
    ['the number of documents of a session', 5, () => adapter.state.count({ ...deep, sessionId: 'p-8' })],
    ['the first sessions with messages', 15, () => adapter.conversations.sessions('', 10)],
    ['later sessions with messages', 15, () => adapter.conversations.sessions('p-6999', 10)],
    ['a page of events', 3, () => adapter.events.read('turn-7', 0, 10)],
    ['the end of the events', 2, () => adapter.events.read('turn-7', 2, 10)],
    ['the last event', 5, () => adapter.events.last('turn-7')],
    ['a lane', 10, () => adapter.turns.lane(BUSY[0])],
    ['lanes with open turns', 20, () => adapter.turns.lanes({ limit: 2 })],
    ['later lanes with open turns', 10, () => adapter.turns.lanes({ after: BUSY[1], limit: 2 })],
  ];
  const changes: Operations = [
    ['create', 20, () => sessions.create(draft({}), by('move'))],
    ['create that takes a surface', 60, () => sessions.create(draft({ attachedSurfaces: ['app'] }), by('move'))],
    [
      'createOrAdopt that adopts',
      20,
      () => sessions.createOrAdopt(draft({ attachedSurfaces: ['app'] }), by('move'), HOUR),
    ],
    ['createOrAdopt that creates', 60, () => sessions.createOrAdopt(draft({ userId: 'user-9000' }), by('move'), HOUR)],
    ['touch', 5, () => sessions.touch(oneActive)],
    ['attachSurface, move', 60, () => sessions.attachSurface(oneActive, 'phone-7', by('move'))],
    ['attachSurface, reject', 60, () => sessions.attachSurface(oneActive, 'voice', by('reject'))],
    ['attachSurface, share', 20, () => sessions.attachSurface(oneActive, 'phone-7', by('share'))],
    ['detachSurface', 20, () => sessions.detachSurface(oneActive, 'app')],
    ['mergeMetadata', 10, () => sessions.mergeMetadata(oneActive, { plan: 'pro' }, 1000)],
    ['update', 10, () => sessions.update(oneActive, { attachedSurfaces: [] })],
    ['control of a lane', 10, () => adapter.turns.control({ sessionId: BUSY[0], mode: 'paused' })],
    ['clear', 20, () => adapter.turns.clear(BUSY[0])],
    ['expire', 10, () => sessions.expire(oneActive)],
    ['revoke', 10, () => sessions.revoke(oneActive)],
    ['delete', 40, () => sessions.delete(oneActive)],
    ['erase', 40, () => sessions.erase(oneActive)],
    ['suspendStale of ten', 50, () => sessions.suspendStale(HOUR, 10)],
    ['expireStale of ten', 100, () => sessions.expireStale({ idleMs: HOUR, maxMs: HOUR }, 10)],
    ['expireStale of ten that are too old', 100, () => sessions.expireStale({ maxMs: HOUR }, 10)],
    ['purgeExpired of ten', 400, () => sessions.purgeExpired(HOUR, 10)],
    ['purgeSettled of ten', 150, () => adapter.turns.purgeSettled(0, 10)],
    ['purgeSettled of none', 5, () => adapter.turns.purgeSettled(HOUR, 10)],
    ['the events of ten turns that expired', 60, () => adapter.events.deleteExpired(10)],
    ['an event that is refused', 5, () => adapter.events.append(lost, batch, HOUR).catch(() => 0)],
    ['a message', 10, () => adapter.conversations.append('p-7', [{ id: 'm', role: 'user', content: 'hello' }])],
    ['a checkpoint', 20, () => adapter.checkpoints.append(checkpoint, 1)],
    ['checkpoints that are pruned', 10, () => adapter.checkpoints.prune('desk', 'p-7', 0)],
    ['a document', 10, () => adapter.state.set(address, 2, { ifVersion: 1 })],
    ['a document that is appended to', 10, () => adapter.state.append(address, { id: 'b', entries: [1] })],
    ['a document that lasts longer', 10, () => adapter.state.get(address, { ttlMs: HOUR })],
    ['a document that goes', 10, () => adapter.state.delete(address)],
    ['the state of a session that is reset', 20, () => adapter.state.reset({ ...reset, namespaces: ['n', 'deep'] })],
    ['its conversation', 20, () => adapter.state.reset({ ...reset, namespaces: ['n'], log })],
    ['ten documents that expired', 30, () => adapter.state.deleteExpired(10)],
    ['ten documents that are idle, beside others that expired', 100, () => adapter.state.evictIdle('n', 10, 10)],
    ['a turn with a document', 40, () => adapter.turns.claim(BUSY[0], claimRequest('w', { documents }))],
    ['a lease', 10, () => adapter.leases.acquire('job-7', 'you', HOUR)],
    ['a lease that is renewed', 10, () => adapter.leases.renew({ name: 'job-7', holder: 'me', fence: 1 }, HOUR)],
  ];

  it.each(finds)('PRF-05 PRF-09 finds by index, in one round trip: %s', expectFew);

  it.each([
    ['a namespace', { scope: 'a', key: `k${DEEP - 5}` }, {}],
    ['a scope', { scope: 'b', key: `k${DEEP - 20}` }, { scope: 'b' }],
  ])('STA-08 a later page of the documents of %s starts at its position in the index', async (_, after, of) => {
    const first = await blocksOf(() => adapter.state.list({ ...deep, ...of, limit: 10 }));
    expect(await blocksOf(() => adapter.state.list({ ...deep, ...of, after, limit: 10 }))).toBeLessThanOrEqual(
      first + 3,
    );
  });

  // The plan of a function depends on earlier calls, so test both modes.
  describe.each(['auto', 'force_generic_plan'])('with plan_cache_mode = %s', (mode) => {
    beforeAll(() => dataSource.query(`SET plan_cache_mode = ${mode}`));
    afterAll(() => dataSource.query('RESET plan_cache_mode'));

    it.each(changes)('PRF-05 PRF-09 finds all its rows by index, in one round trip: %s', expectFew);

    it('PRF-09 looks for expired events without a look at those that last', async () => {
      const last = (): Promise<unknown> =>
        dataSource.query(place.fill(`UPDATE {turn} SET event_ttl = ${HOUR} WHERE event_ttl = 0`));
      const { rows } = await reads(() => adapter.events.deleteExpired(10), last);

      expect(rows).toBeLessThanOrEqual(5);
    });

    it.each<Operations[number]>([
      ['create', 60, () => sessions.create(draft({ userId: 'busy', attachedSurfaces: ['s-7'] }), by('move'))],
      ['create, reject', 60, () => sessions.create(draft({ userId: 'busy', attachedSurfaces: ['x'] }), by('reject'))],
      ['attachSurface', 60, () => sessions.attachSurface('busy-9', 's-7', by('move'))],
    ])('PRF-09 reads no other sessions of a user who has many: %s', async (_, most, operation) => {
      const busy = [
        `INSERT INTO {session} SELECT 'busy-' || n, 'busy', 'space', 'active', n, n, n, '["s-' || n || '"]', '{}', 1`,
        `INSERT INTO {session_surface} SELECT 's-' || n, 'busy', 'busy-' || n`,
        `INSERT INTO {lane} (session_id, next_position, depth, fence, offers) SELECT 'busy-' || n, 1, 0, 1, 0`,
      ];
      const insert = async (): Promise<void> => {
        for (const rows of busy) await dataSource.query(place.fill(`${rows} FROM generate_series(1, 500) AS n`));
      };
      expect((await reads(operation, insert)).rows).toBeLessThanOrEqual(most);
    });

    it('PRF-09 purgeExpired reads no sessions that have just expired', async () => {
      const expire = `UPDATE {session} SET state_changed_at = {now_v1}() WHERE state = 'expired'`;
      const { rows } = await reads(
        () => sessions.purgeExpired(HOUR, 10),
        () => dataSource.query(place.fill(expire)),
      );
      expect(rows).toBeLessThanOrEqual(60);
    });

    it('PRF-07 no operation of any port reads a whole table', async () => {
      const { scanned, rows } = await reads(() => useEverything(adapter));

      expect(scanned).toEqual([]);
      expect(rows).toBeLessThan(MANY / 10);
    });
  });

  /** Two large scopes of documents, and a large log, without planner statistics. */
  async function fillSession(): Promise<void> {
    const numbers = `WITH numbers AS (SELECT generate_series(2, ${DEEP}) AS n)`;
    const documents = `INSERT INTO {document} SELECT 'deep', scope, 'p-7', 'k' || n, '1', '[]', 1, 0, 0, NULL
      FROM numbers, unnest(ARRAY['a', 'b']) AS scope`;
    const messages = `INSERT INTO {message} SELECT 'p-70', n, 'message', NULL, NULL, 'user', '{}', 0 FROM numbers`;
    for (const insert of [documents, messages]) await dataSource.query(place.fill(`${numbers} ${insert}`));
  }

  async function expectFew(_: string, most: number, operation: () => Promise<unknown>): Promise<void> {
    for (let call = 1; call < CALLS; call += 1) await reads(operation);
    const { trips, scanned, lookups, rows } = await reads(operation);

    expect({ trips, scanned }).toEqual({ trips: 1, scanned: [] });
    // An index-only scan reads no row.
    expect(lookups).toBeGreaterThan(0);
    expect(rows).toBeLessThanOrEqual(most);
  }

  /** Counts the blocks that a read statement reads, including skipped index entries. */
  async function blocksOf(read: () => Promise<unknown>): Promise<number> {
    const sent = jest.spyOn(pg.Client.prototype, 'query');
    await read();
    const [sql, values] = sent.mock.calls[0] as unknown as [string, unknown[]];
    sent.mockRestore();
    const explain = `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${sql}`;
    const [{ 'QUERY PLAN': plans }] = await dataSource.query<{ 'QUERY PLAN': { Plan: Blocks }[] }[]>(explain, values);
    const { 'Shared Hit Blocks': hit, 'Shared Read Blocks': fetched } = plans[0].Plan;
    return hit + fetched;
  }

  /** Returns the statements, full table scans and rows of an operation, which is then rolled back with its preparation. */
  async function reads(operation: () => Promise<unknown>, prepare?: () => Promise<unknown>): Promise<Reads> {
    await dataSource.query('BEGIN');
    try {
      await prepare?.();
      const before = await counters();
      const sent = jest.spyOn(pg.Client.prototype, 'query');
      await operation();
      const trips = sent.mock.calls.length;
      sent.mockRestore();
      const after = await counters();
      return {
        trips,
        scanned: [...after].filter(([name, { scans }]) => scans > (before.get(name)?.scans ?? 0)).map(([name]) => name),
        lookups: sum(after, 'lookups') - sum(before, 'lookups'),
        rows: sum(after, 'rows') - sum(before, 'rows'),
      };
    } finally {
      await dataSource.query('ROLLBACK');
    }
  }

  async function counters(): Promise<Map<string, Counters>> {
    const tables = await dataSource.query<({ name: string } & Counters)[]>(
      `SELECT relname AS name, seq_scan::int AS scans, coalesce(idx_scan, 0)::int AS lookups,
         (seq_tup_read + coalesce(idx_tup_fetch, 0))::int AS rows
       FROM pg_stat_xact_user_tables WHERE relname LIKE $1`,
      [`${tablePrefix}%`],
    );
    return new Map(tables.map(({ name, ...table }) => [name.slice(tablePrefix.length), table]));
  }
});

interface Blocks {
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
}

interface Reads {
  readonly trips: number;
  /** Tables with full scans. */
  readonly scanned: string[];
  readonly lookups: number;
  readonly rows: number;
}

interface Counters {
  readonly scans: number;
  /** Number of index scans. */
  readonly lookups: number;
  readonly rows: number;
}

function sum(tables: ReadonlyMap<string, Counters>, what: 'lookups' | 'rows'): number {
  return [...tables.values()].reduce((total, counters) => total + counters[what], 0);
}
