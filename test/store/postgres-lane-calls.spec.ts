import { randomUUID } from 'node:crypto';
import { jest } from '@jest/globals';
import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { type AcceptedTurn, type AcceptTurn } from 'nestjs-agent-sessions/adapter';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import pg from 'pg';
import { eventually } from '../support/eventually.js';
import { unavailable } from '../support/faults.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { PostgresRival } from '../support/postgres-rival.js';
import { describePostgres } from '../support/servers.js';
import { TcpProxy } from '../support/tcp-proxy.js';

/** The number of statements that concurrent calls share when no others are pending. */
const STATEMENTS = 2;
const PATIENCE_MS = 600_000;

describePostgres('concurrent calls of the PostgreSQL store', () => {
  const url = process.env.TEST_POSTGRES_URL ?? '';
  const tablePrefix = `c${randomUUID().slice(0, 8)}_`;
  const open: SessionsAdapter[] = [];
  let store: SessionsAdapter;

  beforeAll(async () => {
    store = await newStore({ migrationsRun: true });
  });

  afterAll(async () => {
    for (const adapter of open) await adapter.close?.();
  });

  it('PRF-05 share two round trips, in any combination', async () => {
    const ids = await newSessions(20);
    await acceptAll(ids);

    const trips = await tripsOf(() =>
      Promise.all(ids.map((id, at) => (at % 2 ? store.turns.claim(id, claimRequest('a')) : accept(id)))),
    );
    expect(trips).toHaveLength(STATEMENTS);
    // Servers with statement statistics must store few statements.
    const others = await tripsOf(() => acceptAll(ids));
    expect(others).toEqual(trips);
  });

  it('TRN-02 keep their order within a session', async () => {
    const [locked, id] = (await newSessions(2)).sort();
    const rival = await PostgresRival.open(url, tablePrefix);
    await rival.begin();
    await rival.query(`SELECT FROM ${tablePrefix}lane WHERE session_id = $1 FOR UPDATE`, [locked]);
    // The first half has to wait, and the second half must not overtake it.
    const accepted = acceptAll([locked, ...Array<string>(19).fill(id)]);
    await rival.isWaitedFor();
    expect(await openTurns([id])).toBe(0);
    await rival.end('COMMIT');
    await rival.close();

    const positions = (await accepted).slice(1).map(({ turn }) => turn.position);
    expect(positions).toEqual(Array.from({ length: 19 }, (_, at) => at + 1));
  });

  it('TRN-01 are rejected individually', async () => {
    const [first, full, last] = await newSessions(3);
    const outcomes = await Promise.allSettled([
      accept(first),
      accept(randomUUID()),
      accept(full, { maxQueued: 0 }),
      accept(last),
    ]);

    expect(outcomes).toMatchObject([
      { value: { turn: { position: 1 } } },
      { reason: { code: 'SESSION_NOT_FOUND' } },
      { reason: { code: 'LANE_FULL' } },
      { value: { turn: { position: 1 } } },
    ]);
  });

  it('TRN-01 succeed without a call that PostgreSQL cannot execute', async () => {
    const ids = await newSessions(6);
    // PostgreSQL text cannot contain NUL.
    const calls = ids.map((id, at) => accept(id, at === 3 ? { version: '\0' } : {}));
    const outcomes = await Promise.allSettled(calls);

    expect(outcomes.map(({ status }) => status)).toEqual(ids.map((_, at) => (at === 3 ? 'rejected' : 'fulfilled')));
    expect(outcomes[3]).toMatchObject({ reason: { code: 'STORE_REJECTED' } });
    expect(await store.turns.list({ sessionId: ids[3] })).toEqual([]);
  });

  it('TRN-01 do not wait for a lane that another transaction holds', async () => {
    const ids = await newSessions(8);
    const rival = await PostgresRival.open(url, tablePrefix);
    await rival.begin();
    await rival.query(`SELECT FROM ${tablePrefix}lane WHERE session_id = ANY($1) FOR UPDATE`, [ids.slice(0, 3)]);
    const impatient = await newStore({ operationTimeoutMs: 60_000 });
    const [a, b, c, ...others] = ids.map((id) => impatient.turns.accept(request(id)));

    // More waiting calls than concurrent statements, and other calls after them.
    expect(await Promise.all(others)).toHaveLength(5);
    expect(await impatient.turns.accept(request(ids[5]))).toMatchObject({ turn: { position: 2 } });
    await rival.end('COMMIT');
    await rival.close();
    expect(await Promise.all([a, b, c])).toMatchObject(Array(3).fill({ turn: { position: 1 } }));
  });

  it('TRN-01 of several processes take their locks in the same order', async () => {
    const ids = (await newSessions(12)).sort();
    const halves = [ids.slice(0, 6), ids.slice(6)];
    const other = await newStore();
    const rival = await PostgresRival.open(url, tablePrefix);
    await rival.begin();
    // Both get some locks and wait in the middle, unless one waits for the other from the start.
    await rival.query(`SELECT FROM ${tablePrefix}lane WHERE session_id = ANY($1) FOR UPDATE`, [[ids[3], ids[9]]]);
    const trips = await tripsOf(async () => {
      const accepted = [
        acceptAll(halves.flat()),
        acceptAll(
          halves.flatMap((half) => half.toReversed()),
          other,
        ),
      ];
      await waitersOf(rival, 4);
      await rival.end('COMMIT');
      await Promise.all(accepted);
    });
    await rival.close();

    // A call that PostgreSQL aborted to end a deadlock would be retried.
    const statements = trips.filter((sql) => sql.includes('lane_call_v1'));
    expect(statements).toHaveLength(2 * STATEMENTS);
    expect(await openTurns(ids)).toBe(24);
  });

  it('TRN-01 all report an unknown outcome when the connection breaks, and can be sent again', async () => {
    const ids = await newSessions(10);
    const proxy = await TcpProxy.start(url);
    const behind = await newStore({ url: proxy.url });
    const requests = ids.map((id) => request(id));
    // Opens the connections.
    await acceptAll(await newSessions(2), behind);
    proxy.swallowAnswers();
    const outcomes = Promise.allSettled(requests.map((each) => behind.turns.accept(each)));
    await eventually(async () => (await openTurns(ids)) === ids.length);
    proxy.cut();

    expect(await outcomes).toMatchObject(ids.map(() => ({ reason: unavailable(true) })));
    proxy.restore();
    const again = await Promise.all(requests.map((each) => behind.turns.accept(each)));
    expect(again).toMatchObject(ids.map(() => ({ duplicate: true, turn: { position: 1 } })));
    await close(behind);
    await proxy.stop();
  });

  it('TRN-01 are all committed or none, when the connection breaks first', async () => {
    const ids = await newSessions(10);
    const rival = await PostgresRival.open(url, tablePrefix);
    await rival.begin();
    // The last lane in the lock order of each statement.
    const last = [...ids].sort()[9];
    await rival.query(`SELECT FROM ${tablePrefix}lane WHERE session_id = $1 FOR UPDATE`, [last]);
    const proxy = await TcpProxy.start(url);
    const behind = await newStore({ url: proxy.url });
    const calls = [...ids].sort().map((id) => behind.turns.accept(request(id)));
    // The first statement is done; the second waits for the last of its lanes.
    await Promise.all(calls.slice(0, 5));
    const outcomes = Promise.allSettled(calls.slice(5));
    await rival.isWaitedFor();
    expect(await openTurns(ids)).toBe(5);
    proxy.cut();

    expect(await outcomes).toMatchObject(Array(5).fill({ reason: unavailable(true) }));
    await rival.end('ROLLBACK');
    await rival.close();
    // PostgreSQL may continue without the client, also between two of the reads.
    await eventually(async () => [5, 10].includes(await openTurns(ids)));
    proxy.restore();
    await close(behind);
    await proxy.stop();
  });

  function accept(sessionId: string, changes: Partial<AcceptTurn> = {}): Promise<AcceptedTurn> {
    return store.turns.accept(request(sessionId, changes));
  }

  function acceptAll(sessionIds: readonly string[], adapter = store): Promise<AcceptedTurn[]> {
    return Promise.all(sessionIds.map((sessionId) => adapter.turns.accept(request(sessionId))));
  }

  async function close(adapter: SessionsAdapter): Promise<void> {
    open.splice(open.indexOf(adapter), 1);
    await adapter.close?.();
  }

  async function openTurns(sessionIds: readonly string[]): Promise<number> {
    const lanes = await Promise.all(sessionIds.map((sessionId) => store.turns.list({ sessionId })));
    return lanes.flat().length;
  }

  async function newSessions(count: number): Promise<string[]> {
    const ids = Array.from({ length: count }, () => randomUUID());
    const now = new Date().toISOString();
    const blank = { state: 'created' as const, attachedSurfaces: [], metadata: {}, version: 1 };
    for (const id of ids) {
      await store.sessions.insert({ ...blank, id, userId: 'ann', createdAt: now, lastActivityAt: now });
    }
    return ids;
  }

  async function newStore({ url: at = url, ...options }: { url?: string } & Options = {}): Promise<SessionsAdapter> {
    // Prevents keep-alive queries while trips are counted, and lock time-outs.
    const dataSource = { type: 'postgres', url: at, poolSize: 6 } as const;
    const adapter = typeormAdapter({ dataSource, tablePrefix, operationTimeoutMs: PATIENCE_MS, ...options });
    await adapter.init?.();
    open.push(adapter);
    return adapter;
  }
});

interface Options {
  readonly migrationsRun?: boolean;
  readonly operationTimeoutMs?: number;
}

function request(sessionId: string, changes: Partial<AcceptTurn> = {}): AcceptTurn {
  return turnRequest(randomUUID(), { sessionId, ...changes });
}

/** @returns the sent statements */
async function tripsOf(operation: () => Promise<unknown>): Promise<string[]> {
  const queries = jest.spyOn(pg.Client.prototype, 'query');
  await operation();
  const trips = queries.mock.calls.map(([sql]) => String(sql));
  queries.mockRestore();
  return trips;
}

/** Waits until the given number of transactions wait for it, directly or indirectly. */
async function waitersOf(rival: PostgresRival, count: number): Promise<void> {
  const sql = `WITH RECURSIVE waiter (pid) AS (
      SELECT pg_backend_pid() UNION SELECT l.pid FROM pg_locks l JOIN waiter w ON w.pid = ANY(pg_blocking_pids(l.pid))
    ) SELECT FROM waiter`;
  await eventually(async () => (await rival.query(sql)).length > count, { what: 'that they wait' });
}
