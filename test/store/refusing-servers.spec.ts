import { randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { type AtomicSessionStoreAdapter } from 'nestjs-agent-sessions/adapter';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import { DataSource } from 'typeorm';
import { eventually } from '../support/eventually.js';
import { openWithTurn, succeeds, unavailable } from '../support/faults.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { describeSqlServers } from '../support/servers.js';

/** A server that answers with errors: its disk is full, or it is read-only. */
describeSqlServers('a server that refuses to write', ({ type, url }) => {
  const tablePrefix = `n${randomUUID().slice(0, 8)}_`;
  const user = `${tablePrefix}user`;
  let server: DataSource;
  let control: SessionsAdapter;
  let store: SessionsAdapter;
  let sessionId: string;

  beforeAll(async () => {
    Logger.overrideLogger(false);
    server = await new DataSource({ type, url }).initialize();
    control = typeormAdapter({ dataSource: { type, url }, tablePrefix, migrationsRun: true });
    await control.init?.();
    await createUser();
  });

  afterAll(async () => {
    await control.close?.();
    await server.query(`DROP USER ${user}`);
    await server.destroy();
  });

  beforeEach(() => {
    sessionId = randomUUID();
    const own = new URL(url);
    [own.username, own.password] = [user, 'secret'];
    store = typeormAdapter({ dataSource: { type, url: own.href, poolSize: 3 }, tablePrefix });
  });

  afterEach(() => store.close?.());

  it('NST-05 leaves no partial write when its disk is full, and succeeds when space is free', async () => {
    const { hold, turn } = await openWithTurn(store, sessionId);
    const request = turnRequest(randomUUID(), { sessionId });
    const message = { id: randomUUID(), role: 'assistant' as const, content: 'hi' };
    const settlement = { status: 'completed' as const, messages: [message], keepCheckpoints: 'all' as const };
    const makeRoom = await fill();
    try {
      await expect(store.turns.accept(request)).rejects.toMatchObject(unavailable(false));
      await expect(store.turns.settle(hold, settlement, claimRequest('b'))).rejects.toMatchObject(unavailable(false));
      expect(await store.turns.list({ sessionId })).toEqual([await control.turns.get(turn.id)]);
      expect(await control.turns.get(turn.id)).toMatchObject({ status: 'running' });
      expect(await control.conversations.page(sessionId)).toEqual([]);
    } finally {
      await makeRoom();
    }

    expect(await store.turns.accept(request)).toMatchObject({ duplicate: false, turn: { position: 2 } });
    const settled = await store.turns.settle(hold, settlement, claimRequest('b'));
    expect(settled).toMatchObject({ turn: { status: 'completed' }, next: { turn: { id: request.id } } });
    expect(await store.conversations.page(sessionId)).toMatchObject([{ id: message.id }]);
  });

  it('NST-05 never reports "not found" while it is read-only, and writes when it is writable again', async () => {
    const { hold, turn } = await openWithTurn(store, sessionId);
    const request = turnRequest(randomUUID(), { sessionId });
    const calls = [
      () => store.turns.accept(request),
      () => store.turns.settle(hold, { status: 'completed', messages: [], keepCheckpoints: 'all' }),
      () => store.turns.renew(hold, 1000),
      () => store.turns.cancel(turn.id, 'cancel'),
      () => (store.sessions as AtomicSessionStoreAdapter).expire(sessionId),
      () => store.sessions.delete(sessionId),
      () => store.conversations.append(sessionId, [{ id: 'm', role: 'user', content: '' }]),
      () => store.state.set({ namespace: 'n', scope: '', sessionId, key: 'k' }, 1),
      () => store.leases.acquire(randomUUID(), 'a', 1000),
    ];
    const takeWrites = await refuseWrites();
    const before = await connections();
    try {
      for (const call of calls) await expect(call()).rejects.toMatchObject(unavailable(false));
      expect(await store.turns.get(turn.id)).toMatchObject({ status: 'running' });
      expect(await store.turns.get(request.id)).toBeNull();
    } finally {
      await takeWrites();
    }

    // A connection with such an error is closed, because it could stay read-only.
    const after = await connections();
    expect(before.filter((id) => !after.includes(id))).not.toEqual([]);
    await succeeds(() => Promise.all([1, 2, 3].map(() => store.turns.renew(hold, 60_000))), 5000);
    expect(await store.turns.accept(request)).toMatchObject({ turn: { position: 2 } });
  });

  /** A user without administrator rights, for whom limits apply. */
  async function createUser(): Promise<void> {
    if (type === 'postgres') {
      await server.query(`CREATE ROLE ${user} LOGIN SUPERUSER PASSWORD 'secret'`);
    } else {
      await server.query(`CREATE USER ${user} IDENTIFIED BY 'secret'`);
      await server.query(`GRANT ALL ON ${new URL(url).pathname.slice(1)}.* TO ${user}`);
    }
  }

  /** Returns the store's connections, as the server lists them. */
  async function connections(): Promise<number[]> {
    const rows = await server.query<{ id: string | number }[]>(
      type === 'postgres'
        ? `SELECT pid AS id FROM pg_stat_activity WHERE usename = '${user}'`
        : `SELECT id FROM information_schema.processlist WHERE user = '${user}'`,
    );
    return rows.map(({ id }) => Number(id));
  }

  /** Makes writes of turns and messages fail like a full disk. @returns a function that ends it */
  async function fill(): Promise<() => Promise<void>> {
    const tables = ['turn', 'message'].map((table) => ({
      table: tablePrefix + table,
      name: `${tablePrefix}no_${table}`,
    }));
    const on = (table: string): string => `BEFORE INSERT ON ${table} FOR EACH ROW`;
    if (type === 'mysql') {
      const full = "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1114, MESSAGE_TEXT = 'The table is full'";
      for (const { table, name } of tables) await server.query(`CREATE TRIGGER ${name} ${on(table)} ${full}`);
      return async () => {
        for (const { name } of tables) await server.query(`DROP TRIGGER ${name}`);
      };
    }
    const full = `${tablePrefix}full`;
    const body = "BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END";
    await server.query(`CREATE FUNCTION ${full}() RETURNS trigger LANGUAGE plpgsql AS $$ ${body} $$`);
    for (const { table, name } of tables) {
      await server.query(`CREATE TRIGGER ${name} ${on(table)} EXECUTE FUNCTION ${full}()`);
    }
    return () => server.query(`DROP FUNCTION ${full} CASCADE`);
  }

  /** Makes the server read-only, like a former primary. @returns a function that ends it */
  async function refuseWrites(): Promise<() => Promise<void>> {
    if (type === 'mysql') {
      // Administrators, and so other tests on this server, may still write.
      await server.query('SET GLOBAL read_only = 1');
      return () => server.query('SET GLOBAL read_only = 0');
    }
    await server.query(`ALTER ROLE ${user} SET default_transaction_read_only = on`);
    // Applies to new connections. One that ends during a later call would leave open whether the call was applied.
    const old = await connections();
    await server.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${user}'`);
    await eventually(async () => !(await connections()).some((id) => old.includes(id)));
    await Promise.allSettled([1, 2, 3].map(() => store.ping()));
    return () => server.query(`ALTER ROLE ${user} RESET default_transaction_read_only`);
  }
});
