import {
  type AcceptTurn,
  type AtomicSessionStoreAdapter,
  encodeCursor,
  type NewSession,
  type SurfaceRules,
  type TurnHold,
  type TurnSettlement,
} from 'nestjs-agent-sessions/adapter';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { openMysql, type OpenMysql } from '../support/mysql-database.js';
import { useEverything } from '../support/use-everything.js';
import { describeMariadb } from '../support/servers.js';

const MANY = 20_000;
/** Number of users. Each has one session in every state, and a second active one. */
const USERS = MANY / 5;
/** Number of turns, checkpoints and messages of one session. */
const DEEP = 3000;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const START = Date.now();
const MOVE: SurfaceRules = { policy: 'move', maxSurfaces: 16 };

/** A description, the maximum number of rows to read, and the operation. */
type Operations = [string, number, () => Promise<unknown>][];

/**
 * Reads of the server per operation among twenty thousand sessions, from the counters of the connection. They must not
 * exceed the rows of the answer.
 */
describeMariadb('reads of the MySQL store', () => {
  let store: OpenMysql;
  let sessions: AtomicSessionStoreAdapter;

  beforeAll(async () => {
    // One connection, because each connection has its own counters.
    store = await openMysql(1);
    ({ sessions } = store);
    await fill(store);
  }, 60_000);

  afterAll(() => store.close());

  const draft = (changes: Partial<NewSession>): NewSession => ({
    id: 'new',
    userId: 'user-7',
    workspaceId: 'space',
    attachedSurfaces: [],
    metadata: {},
    ...changes,
  });

  it.each<Operations[number]>([
    ['a session', 1, () => sessions.fetchById('p-7')],
    ['the sessions of a user', 6, () => sessions.fetchMany({ userId: 'user-7' })],
    ['sessions of a user in states', 6, () => sessions.fetchMany({ userId: 'user-7', state: ['active', 'created'] })],
    ['the number of sessions of a user', 6, () => sessions.count({ userId: 'user-7' })],
    ['sessions with a surface', 8, () => sessions.fetchMany({ surfaceId: 'phone-7' })],
    ['sessions of a user with a surface', 11, () => sessions.fetchMany({ userId: 'user-7', surfaceId: 'app' })],
    ['the latest sessions in a state', 51, () => sessions.fetchMany({ state: 'active' })],
    ['a later page of them', 52, async () => sessions.fetchMany({ state: 'active', cursor: await laterPage() })],
    ['the latest sessions in several states', 110, () => sessions.fetchMany({ state: ['active', 'created'] })],
    ['the latest of all sessions', 220, () => sessions.fetchMany({})],
    ['a later page of all sessions', 220, async () => sessions.fetchMany({ cursor: await laterPage() })],
    ['the latest sessions of a workspace', 60, () => sessions.fetchMany({ workspaceId: 'space' })],
    ['the sessions of an empty workspace', 5, () => sessions.fetchMany({ workspaceId: 'empty' })],
    ['a turn', 1, () => store.ports.turns.get('turn-7')],
    ['the turns of a session', 3, () => store.ports.turns.list({ sessionId: 'p-7' })],
    ['the latest checkpoint', 1, () => store.ports.checkpoints.load('desk', 'p-7')],
    ['a window of messages', 4, () => store.ports.conversations.window('p-7', 10)],
    ['a page of documents', 4, () => store.ports.state.list({ namespace: 'n', sessionId: 'p-7', limit: 10 })],
    ['the number of documents', 4, () => store.ports.state.count({ namespace: 'n', sessionId: 'p-7' })],
    ['sessions with messages', 25, () => store.ports.conversations.sessions('p-1', 10)],
    ['sessions with checkpoints', 120, () => store.ports.checkpoints.list('desk', { prefix: 'p-1' })],
  ])('PRF-09 finds by index %s', expectFew);

  it.each<Operations[number]>([
    ['create', 12, () => sessions.create(draft({}), MOVE)],
    ['create that takes a surface', 60, () => sessions.create(draft({ id: 'b', attachedSurfaces: ['app'] }), MOVE)],
    ['createOrAdopt', 60, () => sessions.createOrAdopt(draft({ id: 'c', userId: 'user-900' }), MOVE, HOUR)],
    ['touch', 20, () => sessions.touch('p-4008')],
    ['attachSurface', 60, () => sessions.attachSurface('p-4007', 'phone-7', MOVE)],
    ['expire', 20, () => sessions.expire('p-4009')],
    ['revoke', 20, () => sessions.revoke('p-4012')],
    ['delete', 60, () => sessions.delete('p-4010')],
    ['erase', 60, () => sessions.erase('p-4011')],
    ['suspendStale of ten', 40, () => sessions.suspendStale(HOUR, 10)],
    ['expireStale of ten', 120, () => sessions.expireStale({ idleMs: HOUR, maxMs: HOUR }, 10)],
    ['purgeExpired of ten', 320, () => sessions.purgeExpired(HOUR, 10)],
    ['due of ten', 40, () => store.ports.turns.due(10)],
    ['purgeSettled of ten', 150, () => store.ports.turns.purgeSettled(0, 10)],
    ['deleteExpired of ten', 40, () => store.ports.state.deleteExpired(10)],
    ['evictIdle of ten', 80, () => store.ports.state.evictIdle('n', 10, 10)],
    ['deleteExpired of the events of ten turns', 60, () => store.ports.events.deleteExpired(10)],
  ])('PRF-09 finds all its rows by index: %s', expectFew);

  it('PRF-09 SES-16 createOrAdopt reads no older sessions of its user', async () => {
    const columns = 'workspace_id, state_changed_at, metadata, version';
    await store.query(
      `INSERT INTO {session} (id, user_id, state, created_at, last_activity_at, surfaces, ${columns})
       SELECT CONCAT('old-', id), 'busy', 'suspended', created_at - ${HOUR}, last_activity_at - ${HOUR}, '[]', ${columns}
       FROM {session} LIMIT 500`,
    );
    const create = (): Promise<unknown> => sessions.createOrAdopt(draft({ id: 'after', userId: 'busy' }), MOVE, 10_000);
    await expectFew('', 60, create);
    expect(await create()).toMatchObject({ created: false, session: { id: 'after' } });
  });

  it('PRF-09 create and attachSurface read no other sessions of a user who has many', async () => {
    const columns = 'state_changed_at, metadata, version';
    await store.query(
      `INSERT INTO {session} (id, user_id, workspace_id, state, created_at, last_activity_at, surfaces, ${columns})
       SELECT CONCAT('many-', id), 'many', 'space', 'active', created_at, last_activity_at, surfaces, ${columns}
       FROM {session} WHERE id LIKE 'p-1%' LIMIT 500`,
    );
    await store.query(
      `INSERT INTO {session_surface} SELECT CONCAT('s-', id), 'many', id FROM {session} WHERE user_id = 'many'`,
    );
    await expectFew('', 60, () =>
      sessions.create(draft({ id: 'one-more', userId: 'many', attachedSurfaces: ['s-many-p-1'] }), MOVE),
    );
    await expectFew('', 60, () => sessions.attachSurface('one-more', 'other', MOVE));
  });

  it('PRF-09 purgeExpired reads no sessions that have just expired', async () => {
    await store.query(`UPDATE {session} SET state_changed_at = UNIX_TIMESTAMP() * 1000 WHERE state = 'expired'`);
    await expectFew('', 60, () => sessions.purgeExpired(HOUR, 10));
  });

  describe('of a session with a long history', () => {
    let hold: TurnHold;
    const before = DEEP / 2;

    it.each<Operations[number]>([
      ['the first turns', 11, () => store.ports.turns.list({ sessionId: 'deep', limit: 10 })],
      ['later turns', 11, () => store.ports.turns.list({ sessionId: 'deep', after: before, limit: 10 })],
      ['its open turns', 3, () => store.ports.turns.list({ sessionId: 'deep', status: ['queued', 'running'] })],
      ['the latest checkpoint', 2, () => store.ports.checkpoints.load('desk', 'deep')],
      ['orchestrators with checkpoints', 8, () => store.ports.checkpoints.orchestrators('deep')],
      ['checkpoints before one', 11, () => store.ports.checkpoints.history('desk', 'deep', { before, limit: 10 })],
      ['a page of documents', 14, () => store.ports.state.list({ ...SHELF, limit: 10 })],
      ['a page of documents of a scope', 14, () => store.ports.state.list({ ...SHELF, scope: 'c', limit: 10 })],
      [
        'a later page of documents',
        14,
        () => store.ports.state.list({ ...SHELF, after: { scope: 'c', key: 'k2' }, limit: 10 }),
      ],
      ['the number of documents of a scope', 4, () => store.ports.state.count({ ...SHELF, scope: 'none' })],
      ['a reset', 40, () => store.ports.state.reset({ sessionId: 'deep', namespaces: ['none'], epoch: 'e' })],
      ['a page of messages', 11, () => store.ports.conversations.page('deep', { after: before, limit: 10 })],
      ['a window of messages', 14, () => store.ports.conversations.window('deep', 10)],
      ['a page of events', 14, () => store.ports.events.read('turn-7', before, 10)],
      ['the last event', 2, () => store.ports.events.last('turn-7')],
      ['accept', 20, () => accept('one')],
      ['accept with a key', 20, () => accept('two', { idempotency: { key: 'new', hash: '', ttlMs: HOUR } })],
      [
        'accept with a key that was used',
        20,
        () => accept('x', { idempotency: { key: 'key-7', hash: '', ttlMs: HOUR } }),
      ],
      ['claim', 45, async () => (hold = await take())],
      ['settle and claim', 60, () => store.ports.turns.settle(hold, SETTLEMENT, CLAIM)],
      ['its lane', 20, () => store.ports.turns.lane('deep')],
      ['lanes with open turns', 30, () => store.ports.turns.lanes({ limit: 10 })],
      [
        'control of its lane',
        30,
        () => store.ports.turns.control({ sessionId: 'deep', mode: 'draining', foreignSession: true }),
      ],
      ['clear', 40, () => store.ports.turns.clear('deep')],
    ])('PRF-06 reads only the rows of its answer: %s', expectFew);

    function accept(id: string, changes: Partial<AcceptTurn> = {}): Promise<unknown> {
      return store.ports.turns.accept(turnRequest(id, { sessionId: 'deep', foreignSession: true, ...changes }));
    }

    async function take(): Promise<TurnHold> {
      const claimed = await store.ports.turns.claim('deep', CLAIM);
      if (!claimed) throw new Error('Nothing was claimed.');
      return claimed.hold;
    }
  });

  it('PRF-07 no operation of any port reads a whole table', async () => {
    expect(await reads(() => useEverything(store.ports))).toBeLessThan(MANY / 10);
  });

  async function expectFew(_: string, most: number, operation: () => Promise<unknown>): Promise<void> {
    const rows = await reads(operation);

    expect(rows).toBeGreaterThan(0);
    expect(rows).toBeLessThanOrEqual(most);
  }

  /** Counts all rows and index entries that an operation reads. */
  async function reads(operation: () => Promise<unknown>): Promise<number> {
    const [once, before] = [await counters(), await counters()];
    await operation();
    const after = await counters();
    // Subtracts the reads of the counter query.
    const read = (name: string): number => after[name] - before[name] - (before[name] - once[name]);
    return Object.keys(after).reduce((sum, name) => sum + read(name), 0);
  }

  async function counters(): Promise<Record<string, number>> {
    const rows = await store.query("SHOW SESSION STATUS LIKE 'Handler_read%'");
    return Object.fromEntries(rows.map((row) => [String(row.Variable_name), Number(row.Value)]));
  }

  /** A cursor after half of the active sessions. */
  async function laterPage(): Promise<string> {
    const session = await sessions.fetchById(`p-${USERS * 1.5}`);
    if (!session) throw new Error('The session does not exist.');
    return encodeCursor(session);
  }
});

const SHELF = { namespace: 'n', sessionId: 'deep' };
const CLAIM = claimRequest('worker', { windows: { desk: 10 } });
const SETTLEMENT: TurnSettlement = {
  status: 'awaiting-input',
  messages: [{ id: 'answer', role: 'assistant', content: 'hi' }],
  checkpoint: {
    orchestrator: 'desk',
    sessionId: 'deep',
    turnIndex: DEEP,
    state: {},
    lastRoute: [],
    signature: '',
    version: '1',
    summarizedThrough: 0,
  },
  keepCheckpoints: DEEP,
};

const DIGIT =
  '(SELECT 0 AS d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)';
const NUMBERS = `(SELECT a.d + 10 * b.d + 100 * c.d + 1000 * d.d + 10000 * e.d AS n
  FROM ${['a', 'b', 'c', 'd', 'e'].map((name) => `${DIGIT} ${name}`).join(' JOIN ')} HAVING n < ${MANY}) numbers`;

/** Session `p-7` of `user-7` has the surfaces `app`, like all, and `phone-7`. Higher numbers are older. */
const DEEP_FILL: readonly string[] = [
  `{lane} (session_id, next_position, depth, fence, offers) SELECT 'deep', ${DEEP + 1}, 0, 1, 0`,
  `{turn} (id, session_id, position, orchestrator, version, request, attributes, idempotency_key, request_hash, status,
     failures, lost, lost_since_step, accepted_at, settled_at)
   SELECT CONCAT('deep-', n), 'deep', n + 1, 'desk', '1', '{"input":{"text":""}}', '{}', CONCAT('key-', n), '',
     'completed', 0, 0, 0, ${START}, ${START}`,
  `{turn_event} SELECT 'turn-7', n + 2, 1, n + 2, '[{"type":"delta","data":1}]'`,
  `{checkpoint} SELECT 'desk', 'deep', n, NULL, NULL, '{}', '[]', '', '1', 0, ${START}, NULL`,
  `{document} SELECT 'n', 'c', 'deep', CONCAT('k', n), '1', '[]', 1, n, n, NULL`,
  `{message} SELECT 'deep', n + 1, 'message', NULL, NULL, 'user', '{"content":"hi"}', ${START}`,
];

const FILL: readonly string[] = [
  `{session} (id, user_id, workspace_id, state, created_at, last_activity_at, state_changed_at, surfaces, metadata, version)
   SELECT CONCAT('p-', n), CONCAT('user-', n % ${USERS}), 'space',
     ELT(1 + FLOOR(n / ${USERS}), 'created', 'active', 'suspended', 'expired', 'active'),
     ${START} - ${MINUTE} * n, ${START} - ${MINUTE} * n, ${START} - ${MINUTE} * n, CONCAT('["app","phone-', n, '"]'), '{}', 1`,
  `{session_surface} SELECT 'app', CONCAT('user-', n % ${USERS}), CONCAT('p-', n)`,
  `{session_surface} SELECT CONCAT('phone-', n), CONCAT('user-', n % ${USERS}), CONCAT('p-', n)`,
  `{lane} (session_id, next_position, depth, fence, attention_at, offers)
   SELECT CONCAT('p-', n), 2, 0, 1, IF(n % 500 = 0, ${START}, NULL), 0`,
  `{turn} (id, session_id, position, orchestrator, version, request, attributes, idempotency_key, status,
     failures, lost, lost_since_step, accepted_at, settled_at, event_ttl)
   SELECT CONCAT('turn-', n), CONCAT('p-', n), 1, 'desk', '1', '{}', '{}', 'key', 'completed', 0, 0, 0, ${START}, ${START},
     IF(n % 2 = 0, 0, NULL)`,
  `{turn_event} SELECT CONCAT('turn-', n), 1, 1, 1, '[{"type":"delta","data":1}]'`,
  `{step} SELECT CONCAT('turn-', n), REPEAT('0', 64), '["step",0,"answer","","look up",0]', '1'`,
  "{signal} SELECT CONCAT('turn-', n), 'go', '1'",
  `{checkpoint} SELECT 'desk', CONCAT('p-', n), 0, CONCAT('turn-', n), NULL, '{}', '[]', '', '1', 0, ${START}, NULL`,
  `{message} SELECT CONCAT('p-', n), 1, 'message', CONCAT('turn-', n), 'desk', 'user', '{"content":"hi"}', ${START}`,
  `{document} SELECT 'n', 'c', CONCAT('p-', n), 'k', '1', '[]', 1, n, n, IF(n % 2 = 0, ${START}, NULL)`,
  "{lease} SELECT CONCAT('job-', n), 'me', 1, 0",
  "{tombstone} SELECT CONCAT('gone-', n), 0",
];

async function fill(store: OpenMysql): Promise<void> {
  for (const rows of FILL) {
    await store.query(`INSERT INTO ${rows} FROM ${NUMBERS}`);
    await store.query(`ANALYZE TABLE ${/\{\w+\}/.exec(rows)?.[0]}`);
  }
  // Not counted: the table statistics do not describe a session that differs from all others.
  for (const rows of DEEP_FILL) {
    const limit = rows.startsWith('{lane}') ? 1 : DEEP;
    await store.query(`INSERT INTO ${rows} FROM ${NUMBERS} WHERE n < ${limit}`);
  }
}
