import { join } from 'node:path';
import { type SessionsAdapter, SessionsConfigurationError, SessionStore } from 'nestjs-agent-sessions';
import { type ClaimedTurn } from 'nestjs-agent-sessions/adapter';
import { eventually } from '../support/eventually.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { steadyClock } from '../support/steady-clock.js';
import { StoreProcess } from '../support/store-process.js';
import { sqliteAdapter, sqliteOptions, temporaryFolder } from '../support/stores.js';

/** Several processes on one SQLite file. The others run the built package: `npm test` builds it first. */
describe('processes on one SQLite file', () => {
  const processes: StoreProcess[] = [];
  const adapters: SessionsAdapter[] = [];
  let file: string;

  beforeEach(() => {
    file = join(temporaryFolder(), 'sessions.db');
  });

  afterEach(async () => {
    await Promise.all(processes.splice(0).map((each) => each.kill()));
    for (const adapter of adapters.splice(0)) await adapter.close?.();
  });

  it('NST-05 ten processes can open a new file concurrently', async () => {
    const starters = await Promise.all(Array.from({ length: 10 }, () => start()));

    await Promise.all(starters.map((starter) => starter.call('init')));

    await Promise.all(
      starters.map((starter, index) => starter.call('sessions.create', { ...SESSION, id: `session-${index}` }, RULES)),
    );
    const store = await open();
    expect(await new SessionStore(store.sessions).count({ userId: 'ann' })).toBe(10);
  }, 60_000);

  it('TRN-20 rejects a second worker while the first one is alive, and reports what to do', async () => {
    const first = await worker();
    const second = await open();

    const refused = second.beginWork?.();

    await expect(refused).rejects.toBeInstanceOf(SessionsConfigurationError);
    await expect(refused).rejects.toThrow(file);
    await expect(refused).rejects.toThrow('has one worker process at a time');
    await expect(first.call('ping')).resolves.toBeUndefined();
    // It may do everything except run turns.
    await second.sessions.insert({ ...(await new SessionStore(second.sessions).create({ userId: 'ann' })), id: 'api' });
  });

  it('TRN-15 takes over immediately from a killed worker, with its running turns', async () => {
    const first = await worker();
    await first.call('sessions.create', SESSION, RULES);
    await first.call('turns.accept', turnRequest('t'));
    const { hold } = await first.call<ClaimedTurn>('turns.claim', 's', claimRequest('first'));
    const second = await open();
    expect(await second.turns.claim('s', claimRequest('second'))).toBeNull();
    const takeOver = second.beginWork?.();

    await first.kill();
    const killedAt = steadyClock.now();
    await takeOver;

    expect(steadyClock.now() - killedAt).toBeLessThan(2000);
    expect(await second.turns.due(10)).toEqual(['s']);
    const claimed = await second.turns.claim('s', claimRequest('second'));
    expect(claimed).toMatchObject({ hold: { turnId: 't' }, turn: { status: 'running', failures: 0, lost: 1 } });
    expect(claimed?.hold.fence).toBeGreaterThan(hold.fence);
  });

  it('TRN-20 allows the next worker as soon as the first one has closed its store', async () => {
    const first = await worker();
    const second = await open();
    const takeOver = second.beginWork?.();
    await first.call('close');

    await expect(takeOver).resolves.toBeUndefined();
  });

  it.each([1, 25])(
    'TRN-15 keeps every turn that a killed process reported as accepted, %i concurrently',
    async (atOnce) => {
      const first = await worker();
      await first.call('sessions.create', SESSION, RULES);
      first.flood(turnRequest('t', { maxQueued: 1_000_000 }), atOnce);
      await eventually(() => first.accepted.length >= 200, { what: 'accepted turns' });

      await first.kill();

      const store = await open();
      const stored = await store.turns.list({ sessionId: 's', limit: 1_000_000 });
      const ids = new Set(stored.map(({ id }) => id));
      expect(first.accepted.filter((id) => !ids.has(id))).toEqual([]);
      expect(stored.map(({ position }) => position)).toEqual(stored.map((_, index) => index + 1));
    },
    30_000,
  );

  it('TRN-03 grants a turn to one of two processes that claim concurrently', async () => {
    const [first, store] = [await worker(), await open()];
    await first.call('sessions.create', SESSION, RULES);
    for (let turns = 0; turns < 50; turns += 1) {
      await store.turns.accept(turnRequest(`t-${turns}`));
      const claims = await Promise.all([
        first.call<ClaimedTurn | null>('turns.claim', 's', claimRequest('first')),
        store.turns.claim('s', claimRequest('second')),
      ]);
      const claimed = claims.filter((claim) => claim !== null);
      expect(claimed.map(({ hold }) => hold.turnId)).toEqual([`t-${turns}`]);
      await store.turns.settle(claimed[0].hold, { status: 'completed', messages: [], keepCheckpoints: 'all' });
    }
  });

  async function start(): Promise<StoreProcess> {
    const started = await StoreProcess.start(sqliteOptions(file));
    processes.push(started);
    return started;
  }

  async function worker(): Promise<StoreProcess> {
    const started = await start();
    await started.call('init');
    await started.call('beginWork');
    return started;
  }

  /** Opens the same file in this process. */
  async function open(): Promise<SessionsAdapter> {
    const adapter = sqliteAdapter(file);
    adapters.push(adapter);
    await adapter.init?.();
    return adapter;
  }
});

const RULES = { policy: 'move', maxSurfaces: 16 };
const SESSION = { id: 's', userId: 'ann', attachedSurfaces: [], metadata: {} };
