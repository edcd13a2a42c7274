import { randomUUID } from 'node:crypto';
import { jest } from '@jest/globals';
import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { type AtomicSessionStoreAdapter, type ClaimedTurn } from 'nestjs-agent-sessions/adapter';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import pg from 'pg';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { PostgresRival } from '../support/postgres-rival.js';
import { describePostgres } from '../support/servers.js';

const CART = { namespace: 'n', scope: '', key: 'cart' };
const WANTED = { windows: { desk: 10 }, documents: { desk: [CART] } };
const RULES = { policy: 'move', maxSurfaces: 16 } as const;

describePostgres('the PostgreSQL store', () => {
  const url = process.env.TEST_POSTGRES_URL ?? '';
  const tablePrefix = `r${randomUUID().slice(0, 8)}_`;
  let store: SessionsAdapter;
  let sessions: AtomicSessionStoreAdapter;

  beforeAll(async () => {
    const dataSource = { type: 'postgres', url, poolSize: 3 } as const;
    // Prevents keep-alive queries while trips are counted.
    store = typeormAdapter({ dataSource, tablePrefix, migrationsRun: true, operationTimeoutMs: 600_000 });
    sessions = store.sessions as AtomicSessionStoreAdapter;
    await store.init?.();
    await sessions.create({ id: 's', userId: 'ann', attachedSurfaces: [], metadata: {} }, RULES);
  });

  afterAll(() => store.close?.());

  it('PRF-05 accept, claim with all its data, and settle with the next turn take one round trip each', async () => {
    expect(await tripsOf(() => store.turns.accept(turnRequest('first')))).toBe(1);
    await store.turns.accept(turnRequest('second'));
    let claimed: ClaimedTurn | null = null;
    expect(
      await tripsOf(async () => {
        claimed = await store.turns.claim('s', claimRequest('a', WANTED));
      }),
    ).toBe(1);

    const { hold } = claimed as unknown as ClaimedTurn;
    const trips = await tripsOf(async () => {
      const message = { id: randomUUID(), role: 'assistant' as const, content: 'hi' };
      const settlement = {
        status: 'awaiting-input' as const,
        messages: [message],
        keepCheckpoints: 10,
        checkpoint: CHECKPOINT,
        stateChanges: [{ name: CART, append: { id: 'bought', entries: ['apple'], initial: [] } }],
      };
      const { next } = await store.turns.settle(hold, settlement, claimRequest('b', WANTED));
      expect(next).toMatchObject({
        turn: { id: 'second' },
        checkpoint: { turnIndex: 0 },
        history: [{ content: 'hi' }],
        documents: [{ batches: [{ entries: ['apple'] }] }],
      });
    });
    expect(trips).toBe(1);
  });

  it.each<[string, () => Promise<unknown>]>([
    ['touch', () => sessions.touch('s')],
    ['attachSurface', () => sessions.attachSurface('s', 'web', RULES)],
    ['mergeMetadata', () => sessions.mergeMetadata('s', { a: 1 }, 1000)],
    ['suspendStale', () => sessions.suspendStale(60_000, 500)],
    ['due', () => store.turns.due(100)],
    ['list', () => store.state.list({ namespace: 'n', sessionId: 's', limit: 10 })],
    ['count', () => store.state.count({ namespace: 'n', sessionId: 's' })],
    ['reset', () => store.state.reset({ namespaces: ['n'], sessionId: 's', epoch: 'epoch' })],
    ['sessions', () => store.conversations.sessions('', 10)],
    ['expire', () => sessions.expire('s')],
    ['revoke', () => sessions.revoke('s')],
    ['erase', () => sessions.erase('s')],
  ])('PRF-05 %s takes one round trip', async (_, operation) => {
    expect(await tripsOf(operation)).toBe(1);
  });

  it('PRF-05 an operation takes two more with another default isolation level', async () => {
    const extra = { options: '-c default_transaction_isolation=serializable' };
    const other = typeormAdapter({ dataSource: { type: 'postgres', url, poolSize: 3, extra }, tablePrefix });
    await other.init?.();

    expect(await tripsOf(() => other.leases.acquire('sweep', 'me', 1000))).toBe(3);
    await other.close?.();
  });

  it('TRN-01 an operation that PostgreSQL aborts to end a deadlock is retried and succeeds', async () => {
    await sessions.create({ id: 'd', userId: 'ann', attachedSurfaces: [], metadata: {} }, RULES);
    const other = await PostgresRival.open(url, tablePrefix);
    await other.begin();
    // The other transaction has a longer deadlock time-out, so PostgreSQL aborts ours.
    await other.query("SET LOCAL deadlock_timeout = '10s'");
    await other.query(`UPDATE ${tablePrefix}session SET workspace_id = 'w' WHERE id = 'd'`);
    const queries = jest.spyOn(pg.Client.prototype, 'query');
    // Holds the lane, and waits for the session.
    const expiring = sessions.expire('d');
    await other.isWaitedFor();
    await other.query(`UPDATE ${tablePrefix}lane SET offers = offers WHERE session_id = 'd'`);
    await other.end('COMMIT');
    await other.close();

    expect((await expiring).session).toMatchObject({ state: 'expired', workspaceId: 'w' });
    const calls = queries.mock.calls.filter(([sql]) => String(sql).includes('expire_session'));
    queries.mockRestore();
    expect(calls.length).toBeGreaterThan(1);
  });

  async function tripsOf(operation: () => Promise<unknown>): Promise<number> {
    const queries = jest.spyOn(pg.Client.prototype, 'query');
    await operation();
    const trips = queries.mock.calls.length;
    queries.mockRestore();
    return trips;
  }
});

const CHECKPOINT = {
  orchestrator: 'desk',
  sessionId: 's',
  turnIndex: 0,
  state: {},
  lastRoute: [],
  signature: 'signature',
  version: '1',
  summarizedThrough: 0,
};
