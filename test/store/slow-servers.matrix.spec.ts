import { randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { type SessionsAdapter, type StoreUnavailableError } from 'nestjs-agent-sessions';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import { DataSource } from 'typeorm';
import { eventually } from '../support/eventually.js';
import { openWithTurn, succeeds, unavailable } from '../support/faults.js';
import { turnRequest } from '../support/ledger-requests.js';
import { describePostgres, describeSqlServers } from '../support/servers.js';
import { steadyClock } from '../support/steady-clock.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const BOUND_MS = 1000;
/** Milliseconds long enough for a busy machine, but limited. */
const SOON_MS = 10 * BOUND_MS;

describeSqlServers('a server that is slow or silent', ({ type, url }) => {
  const tablePrefix = `w${randomUUID().slice(0, 8)}_`;
  let proxy: TcpProxy;
  let store: SessionsAdapter;
  let control: SessionsAdapter;
  let database: DataSource;
  let sessionId: string;

  beforeAll(async () => {
    Logger.overrideLogger(false);
    control = typeormAdapter({ dataSource: { type, url }, tablePrefix, migrationsRun: true });
    await control.init?.();
    database = await new DataSource({ type, url }).initialize();
  });

  afterAll(async () => {
    await control.close?.();
    await database.destroy();
  });

  beforeEach(async () => {
    sessionId = randomUUID();
    proxy = await TcpProxy.start(url);
    store = newStore();
  });

  afterEach(async () => {
    proxy.restore();
    await store.close?.();
    await proxy.stop();
  });

  it.each<[string, () => object]>([
    ['', () => ({})],
    [' and migrations are to run', () => ({ migrationsRun: true })],
    [
      ' over a DataSource of the application that is not open',
      () => ({ dataSource: new DataSource({ type, url: proxy.url }) }),
    ],
  ])('NST-05 fails the start when it accepts connections and never answers%s', async (_, options) => {
    store = newStore(options());
    proxy.holdAnswers();
    await soon(expect(store.init?.()).rejects.toMatchObject(unavailable(false)));

    proxy.restore();
    await succeeds(async () => store.init?.());
  });

  it.each([
    ['while it connects', /version\(\)/i],
    ['after that', /usable_from/],
  ])('NST-05 fails the start when it becomes silent %s', async (_, sent) => {
    proxy.holdAnswers(sent);
    await soon(expect(store.init?.()).rejects.toMatchObject(unavailable(false)));
  });

  it('NST-05 does not limit migrations, which wait for another process and may take long', async () => {
    const holder = database.createQueryRunner();
    const name = `${tablePrefix}migrations`;
    const [lock, unlock] =
      type === 'postgres'
        ? ['pg_advisory_lock(hashtextextended($1, 0))', 'pg_advisory_unlock(hashtextextended($1, 0))']
        : ['GET_LOCK(?, 60)', 'RELEASE_LOCK(?)'];
    await holder.query(`SELECT ${lock}`, [name]);
    store = newStore({ migrationsRun: true });
    const opening = store.init?.();
    const early = Promise.race([opening, after(3 * BOUND_MS)]);
    expect(await early).toBe('late');
    await holder.query(`SELECT ${unlock}`, [name]);
    await holder.release();
    await expect(opening).resolves.toBeUndefined();
  });

  it('NST-05 fails calls without an answer in time, and closes their connection', async () => {
    const { turn } = await openWithTurn(store, sessionId);
    await succeeds(() => Promise.all([1, 2, 3, 4].map(() => store.ping())));
    const connections = proxy.connections();
    proxy.holdAnswers();
    const reads = [1, 2, 3, 4].map(() => store.turns.get(turn.id));
    await soon(Promise.all(reads.map((read) => expect(read).rejects.toMatchObject(unavailable(false)))));

    await eventually(() => connections.every(({ destroyed }) => destroyed));
    proxy.restore();
    const read = () =>
      Promise.all([store.sessions.fetchById(sessionId), store.turns.get(turn.id), store.turns.list({ sessionId })]);
    const [session, found, turns] = await succeeds(read);
    expect([session?.id, found?.id, turns.length]).toEqual([sessionId, turn.id, 1]);
  });

  it('NST-05 waits no longer for a new connection, whatever connect time-out the application sets', async () => {
    const [connectTimeout, connectTimeoutMS] = [60_000, 60_000];
    store = newStore({ dataSource: { type, url: proxy.url, poolSize: 3, connectTimeout, connectTimeoutMS } });
    await succeeds(async () => store.init?.());
    proxy.holdAnswers();
    // All open connections are closed, so only new ones remain.
    await Promise.allSettled([1, 2, 3].map(() => store.ping()));
    await soon(expect(store.ping()).rejects.toMatchObject(unavailable(false)));
  });

  it('TRN-01 reports that a write may have happened without an answer to its commit, and it can be sent again', async () => {
    await openWithTurn(store, sessionId);
    const request = turnRequest(randomUUID(), { sessionId });
    const fast = await slowDown('turn', 3 * BOUND_MS);
    await soon(expect(store.turns.accept(request)).rejects.toMatchObject(unavailable(true)));

    // The write happens later, when no caller is waiting.
    await eventually(async () => (await control.turns.get(request.id)) !== null);
    await fast();
    const again = await succeeds(() => store.turns.accept(request));
    expect(again).toMatchObject({ duplicate: true, turn: { position: 2 } });
  });

  it('TRN-01 reports that nothing was written when other transactions delayed it before the commit', async () => {
    // PostgreSQL waits for the lock nine tenths of this time, and must answer in the last one.
    store = newStore({ operationTimeoutMs: 6 * BOUND_MS });
    await openWithTurn(store, sessionId);
    const request = turnRequest(randomUUID(), { sessionId });
    const unlock = await lockLane();
    await soon(expect(store.turns.accept(request)).rejects.toMatchObject(unavailable(false)));

    // The server stops waiting once the caller is gone, and cannot write later.
    await eventually(async () => (await waitingForLocks()) === 0, { limitMs: 15_000 });
    await unlock();
    expect(await control.turns.get(request.id)).toBeNull();
    expect(await store.turns.accept(request)).toMatchObject({ duplicate: false });
  });

  it('TRN-01 reports that nothing was written when no connection of the pool is free in time', async () => {
    store = newStore({ dataSource: { type, url: proxy.url, poolSize: 2 } });
    await openWithTurn(store, sessionId);
    const unlock = await lockLane();
    const requests = Array.from({ length: 20 }, () => turnRequest(randomUUID(), { sessionId }));
    const answers = Promise.allSettled(requests.map((request) => store.turns.accept(request)));
    await soon(answers);
    const refused = (await answers).map((answer) => (answer as PromiseRejectedResult).reason as StoreUnavailableError);
    await unlock();
    await eventually(async () => (await waitingForLocks()) === 0);

    const never = requests.filter((_, index) => !refused[index].maybeApplied);
    // A connection that became free may have sent one at the last moment.
    expect(never.length).toBeGreaterThan(15);
    expect(await Promise.all(never.map(({ id }) => control.turns.get(id)))).toEqual(never.map(() => null));
    expect(await store.turns.accept(never[0])).toMatchObject({ duplicate: false });
  });

  it('NST-05 closes in time while the server is silent', async () => {
    await openWithTurn(store, sessionId);
    proxy.holdAnswers();
    const lost = store.ping();
    void lost.catch(() => {});
    await soon(store.close?.());
    await expect(lost).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });

  function newStore(options: object = {}): SessionsAdapter {
    const dataSource = { type, url: proxy.url, poolSize: 5 };
    return typeormAdapter({ dataSource, tablePrefix, operationTimeoutMs: BOUND_MS, ...options });
  }

  /** Locks the session in another transaction. @returns a function that ends it */
  async function lockLane(): Promise<() => Promise<void>> {
    const other = database.createQueryRunner();
    await other.startTransaction('READ COMMITTED');
    await other.query(`SELECT session_id FROM ${tablePrefix}lane WHERE session_id = '${sessionId}' FOR UPDATE`);
    return async () => {
      await other.rollbackTransaction();
      await other.release();
    };
  }

  async function waitingForLocks(): Promise<number> {
    // MariaDB caches this table for a while, so query it less often.
    await after(150);
    const [{ waiting }] = await database.query<{ waiting: string | number }[]>(
      type === 'postgres'
        ? `SELECT count(*) AS waiting FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%${tablePrefix}%'`
        : `SELECT COUNT(*) AS waiting FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE '%${tablePrefix}%'`,
    );
    return Number(waiting);
  }

  /** Delays every insert. @returns a function that ends it */
  async function slowDown(table: string, ms: number): Promise<() => Promise<void>> {
    const trigger = `${tablePrefix}slow`;
    const on = `BEFORE INSERT ON ${tablePrefix}${table} FOR EACH ROW`;
    if (type === 'mysql') {
      await database.query(`CREATE TRIGGER ${trigger} ${on} DO SLEEP(${ms / 1000})`);
      return () => database.query(`DROP TRIGGER ${trigger}`);
    }
    const body = `BEGIN PERFORM pg_sleep(${ms / 1000}); RETURN NEW; END`;
    await database.query(`CREATE FUNCTION ${trigger}() RETURNS trigger LANGUAGE plpgsql AS $$ ${body} $$`);
    await database.query(`CREATE TRIGGER ${trigger} ${on} EXECUTE FUNCTION ${trigger}()`);
    return () => database.query(`DROP FUNCTION ${trigger} CASCADE`);
  }
});

describePostgres('a DataSource of the application on a slow PostgreSQL', () => {
  const url = process.env.TEST_POSTGRES_URL ?? '';
  const tablePrefix = `v${randomUUID().slice(0, 8)}_`;
  let proxy: TcpProxy;
  let dataSource: DataSource;
  let store: SessionsAdapter;
  let sessionId: string;

  beforeEach(async () => {
    Logger.overrideLogger(false);
    sessionId = randomUUID();
    proxy = await TcpProxy.start(url);
    dataSource = await new DataSource({ type: 'postgres', url: proxy.url, poolSize: 3 }).initialize();
    store = typeormAdapter({ dataSource, tablePrefix, migrationsRun: true, operationTimeoutMs: BOUND_MS });
    await openWithTurn(store, sessionId);
  });

  afterEach(async () => {
    proxy.restore();
    await store.close?.();
    await dataSource.destroy();
    await proxy.stop();
  });

  it('NST-05 waits no longer than that for a connection that the application holds', async () => {
    const long = [1, 2].map(() => dataSource.createQueryRunner());
    await Promise.all(long.map((runner) => runner.startTransaction()));
    const requests = Array.from({ length: 5 }, () => turnRequest(randomUUID(), { sessionId }));
    const refused = requests.map((request) =>
      expect(store.turns.accept(request)).rejects.toMatchObject(unavailable(false)),
    );
    await soon(Promise.all(refused));

    for (const runner of long) {
      expect(await runner.query('SELECT 1 AS one')).toEqual([{ one: 1 }]);
      await runner.commitTransaction();
      await runner.release();
    }
    // No call is waiting that would run now.
    expect(await store.turns.list({ sessionId })).toHaveLength(1);
    expect(await store.turns.accept(requests[0])).toMatchObject({ duplicate: false });
  });

  it('NST-05 closes the connection without an answer, and the application continues with the others', async () => {
    const runner = dataSource.createQueryRunner();
    await runner.startTransaction();
    const backend = (): Promise<{ pid: number }[]> => runner.query('SELECT pg_backend_pid() AS pid');
    const [{ pid }] = await backend();
    proxy.holdAnswers(/accept_v1/);
    const slow = store.turns.accept(turnRequest(randomUUID(), { sessionId }));
    void slow.catch(() => {});
    await eventually(() => proxy.withheld > 0);
    // Sent while the server is silent, and answered afterwards like any other.
    const answer = backend();
    await soon(expect(slow).rejects.toMatchObject(unavailable(true)));
    proxy.restore();

    expect(await answer).toEqual([{ pid }]);
    await runner.commitTransaction();
    await runner.release();
    expect(proxy.sender?.destroyed).toBe(true);
  });

  it('TRN-10 notifications arrive again after the listening connection became silent without breaking', async () => {
    const [{ id }] = await succeeds(() => store.turns.list({ sessionId }));
    // A process receives its own changes without the server.
    const other = typeormAdapter({ dataSource: { type: 'postgres', url }, tablePrefix });
    await other.init?.();
    const heard: string[] = [];
    store.changes.subscribe((turnId) => heard.push(turnId));
    proxy.freeze();

    try {
      await succeeds(async () => {
        await other.turns.cancel(id, 'cancel');
        expect(heard).toContain(id);
      });
    } finally {
      await other.close?.();
    }
  });
});

describePostgres('a PostgreSQL store that closes', () => {
  it('NST-05 closes while it is about to listen again', async () => {
    Logger.overrideLogger(false);
    const proxy = await TcpProxy.start(process.env.TEST_POSTGRES_URL ?? '');
    const tablePrefix = `u${randomUUID().slice(0, 8)}_`;
    const dataSource = { type: 'postgres', url: proxy.url, poolSize: 3 } as const;
    const store = typeormAdapter({ dataSource, tablePrefix, migrationsRun: true });
    await store.init?.();
    proxy.cut();
    proxy.restore();
    proxy.holdAnswers();
    await eventually(() => proxy.withheld > 0);
    const closing = store.close?.();
    proxy.restore();
    await soon(closing);
    await eventually(() => proxy.connections().length === 0);
    await proxy.stop();
  });
});

async function soon(work: Promise<unknown> | undefined): Promise<void> {
  const startedAt = steadyClock.now();
  await work;
  expect(steadyClock.now() - startedAt).toBeLessThan(SOON_MS);
}

function after(ms: number): Promise<'late'> {
  return new Promise((resolve) => setTimeout(() => resolve('late'), ms));
}
