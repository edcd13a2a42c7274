import { setTimeout as delay } from 'node:timers/promises';
import { jest } from '@jest/globals';
import mysql from 'mysql2/promise';
import { SessionStore, StoreUnavailableError } from 'nestjs-agent-sessions';
import { type StateAddress, type SurfaceRules } from 'nestjs-agent-sessions/adapter';
import { eventually } from '../support/eventually.js';
import { turnRequest } from '../support/ledger-requests.js';
import { noteTrips, openMysql, type OpenMysql } from '../support/mysql-database.js';
import { describeMariadb } from '../support/servers.js';

/** A document of an id that no session has. */
const NOBODY: StateAddress = { namespace: 'n', scope: '', sessionId: 'nobody', key: 'k' };
const MOVE: SurfaceRules = { policy: 'move', maxSurfaces: 16 };

/** Conflicting callers. Another connection holds their locks until all of them wait. */
describeMariadb('conflicts in the MySQL store', () => {
  let store: OpenMysql;
  let other: mysql.Connection;

  beforeAll(async () => {
    store = await openMysql(8);
    other = await mysql.createConnection(process.env.TEST_MYSQL_URL ?? '');
    const sessions = new SessionStore(store.sessions);
    for (const id of ['a', 'b', 'c', 'd']) await sessions.create({ id, userId: 'ann' });
  });

  afterEach(() => jest.restoreAllMocks());

  afterAll(async () => {
    await other.end();
    await store.close();
  });

  it('SES-07 retries an operation after a deadlock, with its locks first, and loses nothing', async () => {
    await store.sessions.attachSurface('b', 'web', MOVE);
    await begin();
    await lock("SELECT id FROM {session} WHERE id = 'b' FOR UPDATE");
    // The server aborts the transaction that has written less.
    await lock(`INSERT INTO {tombstone} VALUES ${Array.from({ length: 50 }, (_, n) => `('x${n}', 0)`).join(', ')}`);
    const trips = noteTrips();
    const attached = store.sessions.attachSurface('a', 'web', MOVE);
    await waiting(1);
    await lock("SELECT session_id FROM {lane} WHERE session_id = 'a' FOR UPDATE");
    await other.query('ROLLBACK');

    expect((await attached).movedFrom.map(({ id }) => id)).toEqual(['b']);
    const attempts = trips.filter((trip) => trip.includes('START TRANSACTION'));
    expect(attempts).toHaveLength(2);
    expect(attempts[1].indexOf('_slot`')).toBeLessThan(attempts[1].indexOf('_lane`'));
    expect(await store.sessions.fetchMany({ userId: 'ann', surfaceId: 'web' })).toEqual([
      expect.objectContaining({ id: 'a' }),
    ]);
  });

  it('SES-07 releases its locks after it has waited too long for one, and then retries', async () => {
    await begin();
    await lock("SELECT id FROM {session} WHERE id = 'c' FOR UPDATE");
    const trips = noteTrips();
    const attached = store.sessions.attachSurface('c', 'phone', MOVE);
    const begins = (): number[] => trips.flatMap((trip, at) => (trip.includes('START TRANSACTION') ? [at] : []));
    await eventually(() => begins().length > 1, { limitMs: 9000 });
    await other.query('ROLLBACK');

    expect((await attached).session.attachedSurfaces).toEqual(['phone']);
    expect(trips[begins()[1] - 1]).toBe('ROLLBACK');
  });

  it('SES-16 does not create a session for a free surface while another session attaches it', async () => {
    const share: SurfaceRules = { policy: 'share', maxSurfaces: 16 };
    const draft = { id: 'made', userId: 'ann', attachedSurfaces: ['voice'], metadata: {} };
    await begin();
    // The lock on its lane delays the create after its query.
    await lock("INSERT INTO {lane} (session_id, next_position, depth, fence, offers) VALUES ('made', 1, 0, 1, 0)");
    const ended: string[] = [];
    const made = store.sessions
      .createOrAdopt(draft, share, 60_000)
      .then(({ created }) => ended.push(`made ${created}`));
    await waiting(1);
    const attached = store.sessions.attachSurface('d', 'voice', share).then(() => ended.push('attached'));
    await waiting(2);
    expect(ended).toEqual([]);
    await other.query('ROLLBACK');

    await Promise.all([made, attached]);
    // Their responses may arrive in any order.
    expect(ended.sort()).toEqual(['attached', 'made true']);
  });

  it('TRN-01 accepts a turn once when it is sent twice concurrently', async () => {
    await begin();
    await lock("SELECT session_id FROM {lane} WHERE session_id = 'c' FOR UPDATE");
    const request = turnRequest('once', { sessionId: 'c' });
    const accepted = Promise.all([1, 2, 3].map(() => store.ports.turns.accept(request)));
    await waiting(3);
    await other.query('ROLLBACK');

    expect((await accepted).map(({ duplicate }) => duplicate).sort()).toEqual([false, true, true]);
    expect(await store.ports.turns.list({ sessionId: 'c' })).toHaveLength(1);
  });

  it('ORC-05 a writer that waits for the lane of an id without a session creates it again, and locks it', async () => {
    const held: (() => void)[] = [];
    // Holds the first two writers before their commit, which also removes the lane.
    noteTrips(async (sql) => {
      if (sql.endsWith(';\nCOMMIT') && held.length < 2) await new Promise<void>((resolve) => held.push(resolve));
    });
    const first = append('a');
    await eventually(() => held.length === 1);
    const second = append('b');
    await waiting(1);
    held[0]();
    await first;
    await eventually(() => held.length === 2);
    const third = append('c');
    await waiting(1);
    held[1]();

    await Promise.all([second, third]);
    expect(await batches()).toEqual(['a', 'b', 'c']);
    expect(await store.query("SELECT session_id FROM {lane} WHERE session_id = 'nobody'")).toEqual([]);
  });

  it('ORC-05 stores every change of many concurrent writers to an id without a session', async () => {
    const before = await batches();
    const ids = Array.from({ length: 50 }, (_, n) => `concurrent-${n}`);
    await Promise.all(ids.map(append));

    expect((await batches()).slice(before.length).sort()).toEqual([...ids].sort());
    expect(await store.query("SELECT session_id FROM {lane} WHERE session_id = 'nobody'")).toEqual([]);
  });

  it('retries an operation when another one inserts its row first, and sees that row', async () => {
    let others = 0;
    const trips = noteTrips(async (sql) => {
      if (!sql.includes('INSERT INTO') || (others += 1) > 1) return;
      await other.query(store.place.fill("INSERT INTO {lease} VALUES ('sweep', 'other', 7, 0)"));
    });
    const lease = await store.ports.leases.acquire('sweep', 'me', 60_000);

    // The fence continues from the row that it could not insert.
    expect(lease).toMatchObject({ holder: 'me', fence: 8 });
    expect(trips.filter((trip) => trip.includes('START TRANSACTION'))).toHaveLength(2);
  });

  it('SES-07 keeps one holder of a surface, and every session, after many concurrent calls', async () => {
    const ids = Array.from({ length: 30 }, (_, n) => `of-bob-${n}`);
    const sessions = new SessionStore(store.sessions);
    await Promise.all(ids.map((id) => sessions.create({ id, userId: 'bob', initialSurfaceId: 'web' })));
    await Promise.all(ids.map((id) => store.sessions.attachSurface(id, 'web', MOVE)));

    expect(await store.sessions.fetchMany({ userId: 'bob', surfaceId: 'web' })).toHaveLength(1);
    expect(await store.sessions.count({ userId: 'bob' })).toBe(ids.length);
  });

  it('fails with a typed error after too many conflicts', async () => {
    await begin();
    await lock("SELECT session_id FROM {lane} WHERE session_id = 'd' FOR UPDATE");
    await expect(store.sessions.touch('d')).rejects.toBeInstanceOf(StoreUnavailableError);
    await other.query('ROLLBACK');
  }, 60_000);

  it('SES-10 expires no session with open turns while another transaction has locked its lane', async () => {
    const sessions = new SessionStore(store.sessions);
    for (const id of ['open', 'idle']) await sessions.create({ id, userId: 'cleo' });
    await store.ports.turns.accept(turnRequest('open-turn', { sessionId: 'open' }));
    await delay(5);
    await begin();
    await lock("SELECT session_id FROM {lane} WHERE session_id = 'open' FOR UPDATE");

    const expired = await store.sessions.expireStale({ maxMs: 1 }, 100);
    await other.query('ROLLBACK');
    expect(expired.map(({ session }) => session.id)).toContain('idle');
    expect(await store.sessions.fetchById('open')).toMatchObject({ state: 'created' });
  });

  it('SES-11 deletes no session while another transaction has locked its lane', async () => {
    const sessions = new SessionStore(store.sessions);
    await store.sessions.purgeExpired(0, 100);
    for (const id of ['locked', 'free']) {
      await sessions.create({ id, userId: 'dora' });
      await sessions.expire(id);
    }
    await delay(5);
    await begin();
    await lock("SELECT session_id FROM {lane} WHERE session_id = 'locked' FOR UPDATE");

    const purged = await store.sessions.purgeExpired(1, 100);
    await other.query('ROLLBACK');
    expect(purged).toEqual(['free']);
    expect(await store.sessions.fetchById('locked')).toMatchObject({ state: 'expired' });
  });

  function append(id: string): Promise<unknown> {
    return store.ports.state.append(NOBODY, { id, entries: [id], initial: 0 });
  }

  async function batches(): Promise<string[]> {
    return (await store.ports.state.get(NOBODY))?.batches.map(({ id }) => id) ?? [];
  }

  async function begin(): Promise<void> {
    await other.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED');
    await other.query('START TRANSACTION');
  }

  async function lock(sql: string): Promise<void> {
    await other.query(store.place.fill(sql));
  }

  /** Waits until the given number of transactions of this store wait for a lock. */
  async function waiting(count: number): Promise<void> {
    await eventually(async () => {
      // The server caches the table for a while, so read it less often.
      await delay(150);
      const [row] = await store.query(
        `SELECT COUNT(*) AS waiting FROM information_schema.innodb_trx
         WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE '%${store.tablePrefix}%'`,
      );
      return row.waiting === count;
    });
  }
});
