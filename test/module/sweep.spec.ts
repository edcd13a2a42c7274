import 'reflect-metadata';
import { setTimeout as delay } from 'node:timers/promises';
import { type INestApplicationContext, Injectable, Logger } from '@nestjs/common';
import { Cron, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import {
  memoryAdapter,
  type Session,
  type SessionsAdapter,
  SessionsModule,
  type SessionsModuleOptions,
  SessionStore,
} from 'nestjs-agent-sessions';
import { type AtomicSessionStoreAdapter } from 'nestjs-agent-sessions/adapter';
import { SessionSweeper, SWEEP_JOB, type SweepCounts } from '../../lib/maintenance/session-sweeper.service.js';
import { startApplication } from '../support/application.js';
import { mintId } from '../../lib/common/ids.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { eventually } from '../support/eventually.js';
import { recordingAdapter } from '../support/recording-adapter.js';

const EVERY_SECOND = '* * * * * *';
const DAY = 86_400;
const BRIEF_KEYS = { idempotencySeconds: 1 };
/** Never due during a test. */
const NEW_YEAR = '0 0 1 1 *';

const NOTHING: SweepCounts = {
  runs: 0,
  skipped: 0,
  failed: 0,
  suspended: 0,
  expired: 0,
  purged: 0,
  turns: 0,
  events: 0,
  documents: 0,
};

/** A cron job of the application. */
@Injectable()
class Heartbeat {
  /** The second of each run. */
  readonly beats: number[] = [];

  @Cron(EVERY_SECOND, { name: 'heartbeat' })
  beat(): void {
    this.beats.push(Math.floor(Date.now() / 1000));
  }
}

describe('the sweep of idle sessions', () => {
  const started: INestApplicationContext[] = [];

  afterEach(async () => {
    await Promise.all(started.splice(0).map((app) => app.close()));
  });

  async function start(
    options: SessionsModuleOptions,
    { schedule = 'none' }: { schedule?: 'none' | 'before' | 'after' } = {},
  ): Promise<INestApplicationContext> {
    const scheduleModules = schedule === 'none' ? [] : [ScheduleModule.forRoot()];
    const app = await startApplication({
      imports: [
        ...(schedule === 'before' ? scheduleModules : []),
        SessionsModule.forRoot({ ttlSeconds: 60, ...options }),
        ...(schedule === 'after' ? scheduleModules : []),
      ],
      providers: schedule === 'none' ? [] : [Heartbeat],
    });
    started.push(app);
    return app;
  }

  it.each(['none', 'before', 'after'] as const)(
    'NST-06 SES-20 suspends idle sessions by cron, with the application’s ScheduleModule imported: %s',
    async (schedule) => {
      const { adapter, elapse } = storeWithClock();
      const app = await start({ adapter, sweep: { cron: EVERY_SECOND } }, { schedule });
      const sessions = app.get(SessionStore);
      const idle = await activeSession(sessions);
      elapse(60_001);
      const busy = await activeSession(sessions);

      await eventually(async () => (await sessions.get(idle.id))?.state === 'suspended');

      expect(await sessions.get(idle.id)).toMatchObject({ state: 'suspended', lastActivityAt: idle.lastActivityAt });
      expect(await sessions.get(busy.id)).toEqual(busy);
      expect(sweeperOf(app).counts).toMatchObject({ suspended: 1, skipped: 0 });
    },
  );

  it.each(['before', 'after'] as const)(
    'NST-06 lists its job in a SchedulerRegistry imported %s the module, until the shutdown',
    async (schedule) => {
      const app = await start({ sweep: { cron: NEW_YEAR } }, { schedule });
      const registry = app.get(SchedulerRegistry);

      expect([...registry.getCronJobs().keys()].sort()).toEqual([SWEEP_JOB, 'heartbeat']);
      expect(registry.getCronJob(SWEEP_JOB).isActive).toBe(true);

      await app.close();
      expect(registry.doesExist('cron', SWEEP_JOB)).toBe(false);
    },
  );

  it('SES-20 runs every five minutes unless configured otherwise', async () => {
    const app = await start({}, { schedule: 'before' });

    expect(app.get(SchedulerRegistry).getCronJob(SWEEP_JOB).cronTime.source).toBe('*/5 * * * *');
  });

  it('NST-06 does not make the application’s cron jobs run twice', async () => {
    const app = await start({ sweep: { cron: EVERY_SECOND } }, { schedule: 'before' });
    const { beats } = app.get(Heartbeat);

    await eventually(() => beats.length >= 2);

    // Even if the first run is late on a busy machine, the next one waits for its second.
    expect(new Set(beats).size).toBe(beats.length);
    expect(app.get(SchedulerRegistry).getCronJobs().size).toBe(2);
  });

  it('NST-06 SES-20 does not run with sweep: false or enabled: false', async () => {
    const calls: string[] = [];
    const adapter = recordingAdapter(memoryAdapter(), calls);
    const [app, other] = await Promise.all([
      start({ adapter, sweep: false }, { schedule: 'before' }),
      start({ adapter, sweep: { enabled: false, cron: EVERY_SECOND } }, { schedule: 'before' }),
    ]);

    // The applications' jobs have run twice by now, so the sweep would have run, too.
    await eventually(() => [app, other].every((one) => one.get(Heartbeat).beats.length >= 2));

    expect(calls.filter((call) => call.startsWith('sessions.') || call.startsWith('leases.'))).toEqual([]);
    for (const one of [app, other]) expect(one.get(SchedulerRegistry).doesExist('cron', SWEEP_JOB)).toBe(false);
  });

  it('NST-06 skips and counts runs that are due during another run', async () => {
    const { adapter, sweeping, release } = slowSweeps(memoryAdapter());
    const app = await start({ adapter, sweep: { cron: EVERY_SECOND } });
    const sweeper = sweeperOf(app);

    await eventually(() => sweeper.counts.skipped >= 1);
    expect(sweeping).toEqual({ now: 1, atMost: 1, begun: 1 });

    release();
    await eventually(() => sweeper.counts.runs === 1);
  });

  it('NST-06 SES-20 runs in only one of two applications on a store at a time, by lease', async () => {
    const { adapter, sweeping, release } = slowSweeps(memoryAdapter());
    const [one, other] = await Promise.all([
      start({ adapter, sweep: { cron: NEW_YEAR } }),
      start({ adapter, sweep: { cron: NEW_YEAR } }),
    ]);

    const first = sweeperOf(one).run();
    await eventually(() => sweeping.now === 1);
    await sweeperOf(other).run();
    expect(sweeperOf(other).counts).toEqual({ ...NOTHING, skipped: 1 });

    release();
    await first;
    await sweeperOf(other).run();
    expect(sweeperOf(one).counts).toEqual({ ...NOTHING, runs: 1 });
    expect(sweeperOf(other).counts).toEqual({ ...NOTHING, runs: 1, skipped: 1 });
    expect(sweeping).toEqual({ now: 0, atMost: 1, begun: 2 });
  });

  it('NST-06 SES-20 runs in another application after one died during its sweep', async () => {
    const { adapter: store, elapse } = storeWithClock();
    const died = await store.leases.acquire(SWEEP_JOB, 'a process that is gone', 120_000);
    const app = await start({ adapter: store, sweep: { cron: NEW_YEAR } });
    const sweeper = sweeperOf(app);

    await sweeper.run();
    expect(sweeper.counts).toMatchObject({ runs: 0, skipped: 1 });
    elapse(120_001);
    await sweeper.run();

    expect(died).not.toBeNull();
    expect(sweeper.counts).toMatchObject({ runs: 1, skipped: 1 });
  });

  it('NST-06 retries after a failed run', async () => {
    const { adapter: store, elapse } = storeWithClock();
    const failures = [new Error('The store is away.')];
    const adapter = beforeSweeps(store, async () => {
      const failure = failures.pop();
      if (failure) throw failure;
    });
    const app = await start({ adapter, sweep: { cron: NEW_YEAR } });
    const { id } = await activeSession(app.get(SessionStore));
    elapse(60_001);
    const sweeper = sweeperOf(app);

    await sweeper.run();
    expect(sweeper.counts).toEqual({ ...NOTHING, failed: 1 });
    await sweeper.run();

    expect(sweeper.counts).toEqual({ ...NOTHING, runs: 1, failed: 1, suspended: 1 });
    expect(await app.get(SessionStore).get(id)).toMatchObject({ state: 'suspended' });
  });

  it('NST-06 deletes expired documents even if the sweep of sessions fails', async () => {
    const { adapter: store, elapse } = storeWithClock();
    const adapter = beforeSweeps(store, () => Promise.reject(new Error('The sessions are away.')));
    const app = await start({ adapter, sweep: { cron: NEW_YEAR } });
    await store.state.set({ namespace: 'n', scope: '', sessionId: 's', key: 'k' }, 1, { ttlMs: 1 });
    elapse(2);
    const sweeper = sweeperOf(app);

    await sweeper.run();
    expect(sweeper.counts).toEqual({ ...NOTHING, failed: 1, documents: 1 });
  });

  it('NST-06 deletes expired documents even if settled turns cannot be deleted', async () => {
    const { adapter: store, elapse } = storeWithClock();
    const purgeSettled = () => Promise.reject(new Error('The turns are away.'));
    const turns = Object.assign(Object.create(store.turns) as typeof store.turns, { purgeSettled });
    const app = await start({ adapter: { ...store, turns }, sweep: { cron: NEW_YEAR } });
    await store.state.set({ namespace: 'n', scope: '', sessionId: 's', key: 'k' }, 1, { ttlMs: 1 });
    elapse(2);
    const sweeper = sweeperOf(app);

    await sweeper.run();
    expect(sweeper.counts).toEqual({ ...NOTHING, failed: 1, documents: 1 });
  });

  it('NST-06 expires and deletes sessions even if they cannot be suspended, and logs every error', async () => {
    const lines: string[] = [];
    const { adapter: store, elapse } = storeWithClock();
    const fail = (message: string) => () => Promise.reject(new Error(message));
    const own = store.sessions as AtomicSessionStoreAdapter;
    const sessions = Object.assign(Object.create(own) as typeof own, { suspendStale: fail('A statement timed out.') });
    const turns = Object.assign(Object.create(store.turns) as typeof store.turns, { purgeSettled: fail('No turns.') });
    const leases = Object.assign(Object.create(store.leases) as typeof store.leases, { release: fail('No lease.') });
    const adapter = { ...store, sessions, turns, leases };
    const app = await start({ adapter, sweep: { cron: NEW_YEAR, purgeAfterSeconds: 60 } });
    const { id } = await app.get(SessionStore).create({ userId: 'ann' });
    await app.get(SessionStore).expire(id);
    elapse(60_001);
    Logger.overrideLogger({
      log: () => {},
      warn: (...line: unknown[]) => lines.push(line.join(' ')),
      error: (...line: unknown[]) => lines.push(line.join(' ')),
    });
    const sweeper = sweeperOf(app);

    await expect(sweeper.sweep()).rejects.toThrow('A statement timed out.');
    Logger.overrideLogger(false);
    expect(sweeper.counts).toEqual({ ...NOTHING, failed: 1, purged: 1 });
    expect(await app.get(SessionStore).get(id)).toBeNull();
    expect(lines).toEqual([
      expect.stringContaining('A part of the sweep failed.'),
      expect.stringContaining('The lease of the sweep was not released. It ends after 120 s.'),
    ]);
  });

  it('NST-06 deletes at most 20 sessions at once, with all their data', async () => {
    const { adapter: store, elapse } = storeWithClock();
    const own = store.sessions as AtomicSessionStoreAdapter;
    const limits: number[] = [];
    const purgeExpired: typeof own.purgeExpired = (ms, limit) => (limits.push(limit), own.purgeExpired(ms, limit));
    const sessions = new SessionStore(Object.assign(Object.create(own) as typeof own, { purgeExpired }));
    for (let n = 0; n < 25; n += 1) {
      const { id } = await sessions.create({ userId: 'ann' });
      await sessions.expire(id);
    }
    elapse(1);

    expect(await sessions.purgeExpired(0)).toHaveLength(25);
    expect(limits).toEqual([20, 20]);
  });

  it('NST-06 stops a run at maxPerRun, and continues in the next one', async () => {
    const { adapter, elapse } = storeWithClock();
    const app = await start({ adapter, sweep: { cron: NEW_YEAR, maxPerRun: 2 } });
    const sessions = app.get(SessionStore);
    await Promise.all([1, 2, 3].map(() => activeSession(sessions)));
    elapse(60_001);

    await sweeperOf(app).run();
    expect(await sessions.count({ state: 'suspended' })).toBe(2);
    await sweeperOf(app).run();
    expect(await sessions.count({ state: 'suspended' })).toBe(3);
  });

  it('NST-06 deletes settled turns after a week, and never before their idempotency keys expire', async () => {
    const { adapter, elapse } = storeWithClock();
    const keptLonger = { adapter, sweep: { cron: NEW_YEAR }, turns: { idempotencySeconds: 8 * DAY } };
    const [app, longer] = [await start({ adapter, sweep: { cron: NEW_YEAR } }), await start(keptLonger)];
    const turnId = await settledTurn(adapter, app.get(SessionStore));

    elapse(7 * DAY * 1000);
    await sweeperOf(app).run();
    expect(await adapter.turns.get(turnId)).toMatchObject({ status: 'completed' });
    elapse(1);
    await sweeperOf(longer).run();
    expect(await adapter.turns.get(turnId)).toMatchObject({ status: 'completed' });
    await sweeperOf(app).run();

    expect(await adapter.turns.get(turnId)).toBeNull();
    expect(sweeperOf(app).counts).toMatchObject({ turns: 1 });
    expect(sweeperOf(longer).counts).toMatchObject({ turns: 0 });
  });

  it('NST-06 keeps settled turns permanently with purgeTurnsAfterSeconds: false', async () => {
    const { adapter, elapse } = storeWithClock();
    const app = await start({ adapter, sweep: { cron: NEW_YEAR, purgeTurnsAfterSeconds: false } });
    const turnId = await settledTurn(adapter, app.get(SessionStore));

    elapse(3650 * DAY * 1000);
    await sweeperOf(app).run();

    expect(await adapter.turns.get(turnId)).toMatchObject({ status: 'completed' });
    expect(sweeperOf(app).counts).toMatchObject({ runs: 1, turns: 0 });
  });

  it('NST-06 deletes all due turns and expired documents in one run, in batches', async () => {
    const { adapter, elapse } = storeWithClock();
    const batches: number[] = [];
    const purgeSettled = adapter.turns.purgeSettled.bind(adapter.turns);
    adapter.turns.purgeSettled = (olderThanMs, limit) => {
      batches.push(limit);
      return purgeSettled(olderThanMs, limit);
    };
    const app = await start({ adapter, sweep: { cron: NEW_YEAR, purgeTurnsAfterSeconds: 1 }, turns: BRIEF_KEYS });
    const { id } = await activeSession(app.get(SessionStore));
    const address = { namespace: 'n', scope: '', sessionId: id };
    for (let n = 0; n < 1001; n += 1) await acceptCancelled(adapter, id);
    for (let n = 0; n < 3; n += 1) await adapter.state.set({ ...address, key: `k${n}` }, n, { ttlMs: 1000 });

    elapse(1001);
    await sweeperOf(app).run();

    expect(sweeperOf(app).counts).toMatchObject({ turns: 1001, documents: 3 });
    expect(batches).toEqual([500, 500, 500]);
  });

  it('NST-06 ends a run after the current batch on shutdown', async () => {
    const { adapter, elapse } = storeWithClock();
    const closing: Promise<void>[] = [];
    const purgeSettled = adapter.turns.purgeSettled.bind(adapter.turns);
    adapter.turns.purgeSettled = (olderThanMs, limit) => {
      if (closing.length === 0) closing.push(sweeperOf(app).stop());
      return purgeSettled(olderThanMs, limit);
    };
    const app = await start({ adapter, sweep: { cron: NEW_YEAR, purgeTurnsAfterSeconds: 1 }, turns: BRIEF_KEYS });
    const sweeper = sweeperOf(app);
    const { id } = await activeSession(app.get(SessionStore));
    for (let n = 0; n < 1001; n += 1) await acceptCancelled(adapter, id);

    elapse(1001);
    await sweeper.run();
    await Promise.all(closing);

    expect(sweeper.counts).toMatchObject({ runs: 1, turns: 500 });
  });

  it('NST-06 suspends no more sessions than the current batch on shutdown', async () => {
    const { adapter, elapse } = storeWithClock();
    const closing: Promise<void>[] = [];
    const sessions = adapter.sessions as AtomicSessionStoreAdapter;
    const suspendStale = sessions.suspendStale.bind(sessions);
    sessions.suspendStale = (idleMs, limit) => {
      if (closing.length === 0) closing.push(sweeperOf(app).stop());
      return suspendStale(idleMs, limit);
    };
    const app = await start({ adapter, ttlSeconds: 1, sweep: { cron: NEW_YEAR } });
    const sweeper = sweeperOf(app);
    for (let n = 0; n < 1001; n += 1) await activeSession(app.get(SessionStore));

    elapse(1001);
    await sweeper.run();
    await Promise.all(closing);

    expect(sweeper.counts).toMatchObject({ runs: 1, suspended: 500 });
  });

  it('NST-06 waits for the current run on shutdown, and starts no other', async () => {
    const { adapter, sweeping, release } = slowSweeps(memoryAdapter());
    const app = await start({ adapter, sweep: { cron: EVERY_SECOND } });
    await eventually(() => sweeping.now === 1);

    const closing = app.close().then(() => 'closed');
    // Without the wait the application would have closed in a few milliseconds.
    expect(await Promise.race([closing, delay(200, 'waiting')])).toBe('waiting');
    release();
    expect(await closing).toBe('closed');

    expect(sweeping).toEqual({ now: 0, atMost: 1, begun: 1 });
  });
});

function sweeperOf(app: INestApplicationContext): SessionSweeper {
  return app.get(SessionSweeper, { strict: false });
}

function storeWithClock(): { adapter: SessionsAdapter; elapse: (ms: number) => void } {
  let now = Date.parse('2026-11-21T08:00:00.000Z');
  return { adapter: memoryAdapter({ clock: () => now }), elapse: (ms) => (now += ms) };
}

/** Creates a completed turn in a new session. */
async function settledTurn(adapter: SessionsAdapter, sessions: SessionStore): Promise<string> {
  const { id: sessionId } = await activeSession(sessions);
  const { turn } = await adapter.turns.accept({ ...turnRequest(mintId()), sessionId });
  const claimed = await adapter.turns.claim(sessionId, claimRequest('worker'));
  if (!claimed) throw new Error('Nothing was claimed.');
  await adapter.turns.settle(claimed.hold, { status: 'completed', messages: [], keepCheckpoints: 'all' });
  return turn.id;
}

async function acceptCancelled(adapter: SessionsAdapter, sessionId: string): Promise<void> {
  const id = mintId();
  await adapter.turns.accept({ ...turnRequest(id), sessionId });
  await adapter.turns.cancel(id, 'cancel');
}

async function activeSession(sessions: SessionStore): Promise<Session> {
  const { id } = await sessions.create({ userId: 'ann' });
  return sessions.touch(id);
}

/** Wraps a store to call a function before each sweep. */
function beforeSweeps(adapter: SessionsAdapter, before: () => Promise<void>): SessionsAdapter {
  const sessions = new Proxy(adapter.sessions, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (name !== 'suspendStale' || typeof method !== 'function') return method;
      return async (...args: unknown[]): Promise<unknown> => {
        await before();
        return Reflect.apply(method, target, args) as unknown;
      };
    },
  });
  return { ...adapter, sessions };
}

/** Wraps a store so that sweeps wait until released, and counts the running ones. */
function slowSweeps(adapter: SessionsAdapter) {
  const sweeping = { now: 0, atMost: 0, begun: 0 };
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  const slow = beforeSweeps(adapter, async () => {
    sweeping.begun += 1;
    sweeping.now += 1;
    sweeping.atMost = Math.max(sweeping.atMost, sweeping.now);
    await released;
    sweeping.now -= 1;
  });
  return { adapter: slow, sweeping, release: () => release() };
}
