import { join } from 'node:path';
import Database from 'better-sqlite3';
import { SessionStore, type SessionsAdapter } from 'nestjs-agent-sessions';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import { unavailable } from '../support/faults.js';
import { turnRequest } from '../support/ledger-requests.js';
import { temporaryFolder } from '../support/stores.js';

const LOCKED_TICKS = 50;
const BUSY_TIMEOUT_MS = 100;

/** Tests of the store while another connection writes to its file. */
describe('a SQLite file with another writer', () => {
  const adapters: SessionsAdapter[] = [];
  let file: string;

  beforeEach(() => {
    file = join(temporaryFolder(), 'sessions.db');
  });

  afterEach(async () => {
    for (const adapter of adapters.splice(0)) await adapter.close?.();
  });

  it('NST-05 only delays our writes, and does not block the event loop', async () => {
    const store = await open();
    const unlock = lock();
    let ticks = 0;
    // A blocked event loop would not run it before the store's time-out.
    const clock = setInterval(() => {
      ticks += 1;
      if (ticks === LOCKED_TICKS) unlock();
    }, 5);

    await store.turns.accept(turnRequest('late'));
    clearInterval(clock);

    expect(ticks).toBeGreaterThanOrEqual(LOCKED_TICKS);
    expect(await store.turns.get('late')).toMatchObject({ status: 'queued' });
  });

  it('FIX-65 only delays the checks at the start and those of a worker', async () => {
    const first = await open();
    const unlock = lock();
    const second = typeormAdapter({ dataSource: { type: 'better-sqlite3', database: file } });
    adapters.push(second);
    const begun = second.init!();
    const probed = first.probe!();
    setTimeout(unlock, 200);

    await expect(probed).resolves.toBeUndefined();
    await expect(begun).resolves.toBeUndefined();
  });

  it('NST-05 does not delay reads', async () => {
    const store = await open();
    await store.turns.accept(turnRequest('first'));
    const unlock = lock();

    expect(await store.turns.get('first')).toMatchObject({ status: 'queued' });
    await expect(store.ping()).resolves.toBeUndefined();
    unlock();
  });

  it('NST-05 fails our writes as unavailable after the time-out, but not later ones', async () => {
    const store = await open({ busyTimeoutMs: BUSY_TIMEOUT_MS });
    const unlock = lock();

    const refused = store.turns.accept(turnRequest('refused'));

    await expect(refused).rejects.toMatchObject(unavailable(false));
    await expect(refused).rejects.toThrow('SQLITE_BUSY');
    unlock();
    await store.turns.accept(turnRequest('accepted'));
    expect((await store.turns.list({ sessionId: 's' })).map(({ id }) => id)).toEqual(['accepted']);
  });

  it('NST-05 fails every waiting write at the time-out, and none later', async () => {
    const store = await open({ busyTimeoutMs: BUSY_TIMEOUT_MS });
    const unlock = lock();
    const writes = [1, 2, 3].map((index) => store.turns.accept(turnRequest(`t-${index}`)));

    const answers = await Promise.allSettled(writes);
    unlock();

    expect(answers.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    expect(await store.turns.list({ sessionId: 's' })).toEqual([]);
  });

  async function open(sqlite: { busyTimeoutMs?: number } = {}): Promise<SessionsAdapter> {
    const adapter = typeormAdapter({ dataSource: { type: 'better-sqlite3', database: file }, sqlite });
    adapters.push(adapter);
    await adapter.init?.();
    await new SessionStore(adapter.sessions).create({ id: 's', userId: 'ann' });
    return adapter;
  }

  /** Starts a write in another connection. @returns a function that ends it */
  function lock(): () => void {
    const other = new Database(file);
    other.exec('BEGIN IMMEDIATE');
    return () => {
      other.exec('COMMIT');
      other.close();
    };
  }
});
