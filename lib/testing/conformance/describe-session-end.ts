import { type Session, type SessionChange, type SessionLifetime } from '../../ledger/session.js';
import { SessionStateError } from '../../ledger/session.errors.js';
import { create, createActive, HOUR, idsOf, insertIdle, PLENTY, SHORT, TICK } from './session-fixtures.js';
import { TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

const CONCURRENT = 20;
const DAY = 24 * HOUR;

/** Tests of expireStale (SES-10), absolute lifetimes (SES-19) and purgeExpired (SES-11). */
export function describeSessionEnd(context: ConformanceContext): void {
  const stored = (id: string): Promise<Session | null> => context.sessions.fetchById(id);
  const expireStale = (lifetime: SessionLifetime, limit = PLENTY): Promise<SessionChange[]> =>
    context.sessions.expireStale(lifetime, limit);
  const expireIdle = async (): Promise<string[]> => idsOf((await expireStale({ idleMs: HOUR })).map(toSession));
  const many = <T>(make: (n: number) => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: CONCURRENT }, (_, n) => make(n)));

  /** Removes the sessions that other tests left behind. */
  beforeEach(async () => {
    await context.sessions.expireStale({ idleMs: HOUR, maxMs: HOUR }, PLENTY);
    await context.sessions.purgeExpired(HOUR, PLENTY);
  });

  it('SES-10 expires suspended and created sessions that were idle for too long, but no active ones', async () => {
    const suspended = await insertIdle(context, 2 * HOUR, { state: 'suspended' });
    const created = await insertIdle(context, 2 * HOUR, { state: 'created' });
    const others = [
      await insertIdle(context, 2 * HOUR, { state: 'active' }),
      await insertIdle(context, HOUR / 2, { state: 'suspended' }),
      await insertIdle(context, HOUR / 2, { state: 'created' }),
      await insertIdle(context, 2 * HOUR, { state: 'expired' }),
    ];
    const changes = await expireStale({ idleMs: HOUR });

    expect(idsOf(changes.map(toSession)).sort()).toEqual([suspended.id, created.id].sort());
    for (const before of [suspended, created]) {
      const change = changes.find(({ session }) => session.id === before.id);
      const stateChangedAt = change?.session.stateChangedAt ?? '';
      expect(change).toEqual({
        session: { ...before, state: 'expired', stateChangedAt, version: (before.version ?? 0) + 1 },
        previousState: before.state,
        changed: true,
      });
      expect(stateChangedAt > before.lastActivityAt).toBe(true);
      expect(await stored(before.id)).toEqual(change?.session);
    }
    for (const session of others) expect(await stored(session.id)).toEqual(session);
    expect(await expireIdle()).toEqual([]);
  });

  it('SES-10 does not expire a session that was idle for exactly the limit, to the millisecond', async () => {
    const made = await many(() => create(context));
    const changes = await expireStale({ idleMs: 0 });
    await context.elapse(TICK);
    changes.push(...(await expireStale({ idleMs: 0 })));

    for (const { session } of changes) {
      expect(Date.parse(session.stateChangedAt ?? '')).toBeGreaterThan(Date.parse(session.lastActivityAt));
    }
    expect(idsOf(changes.map(toSession))).toEqual(expect.arrayContaining(idsOf(made)));
  });

  it('SES-10 SES-19 does not expire a session with queued, running or waiting turns', async () => {
    const [queued, running, waiting] = [
      await TestLane.open(context),
      await TestLane.open(context),
      await TestLane.open(context),
    ];
    const lanes = [queued, running, waiting];
    await queued.queue('first');
    const { hold } = await running.run('first');
    const waits = await waiting.run('first');
    await waiting.adapter.turns.wait(waits.hold, {
      signal: 'approval',
      step: waiting.step('approval', null),
      timeoutMs: 0,
    });
    const old = await aged(lanes.map(({ sessionId }) => sessionId));

    expect(await expireIdle()).toEqual([]);
    expect(await expireStale({ maxMs: HOUR })).toEqual([]);
    for (const session of old) expect(await stored(session.id)).toEqual(session);

    await running.settle(hold, { status: 'failed', error: { name: 'Error', message: 'no', code: 'NO' } });
    await waiting.adapter.turns.cancel(waits.turn.id, 'cancel');
    await queued.drain();
    await aged([queued.sessionId]);
    expect((await expireIdle()).sort()).toEqual(lanes.map(({ sessionId }) => sessionId).sort());
  });

  it('SES-10 SES-19 expires nothing without an idle time and a lifetime', async () => {
    expect(await context.sessions.expireStale({}, 10)).toEqual([]);
  });

  it('SES-10 expires at most a batch at a time', async () => {
    const sessions = await many((n) => insertIdle(context, 2 * HOUR, { state: n % 2 === 0 ? 'created' : 'suspended' }));
    const batches: string[][] = [];
    for (let n = 0; n < 4; n += 1) {
      batches.push(idsOf((await expireStale({ idleMs: HOUR, maxMs: DAY }, 8)).map(toSession)));
    }

    expect(batches.map(({ length }) => length)).toEqual([8, 8, 4, 0]);
    expect(batches.flat().sort()).toEqual(idsOf(sessions).sort());
  });

  it('SES-10 neither fails nor loses a session when a sweep and deletes race', async () => {
    const sessions = await many(() => insertIdle(context, 2 * HOUR, { state: 'suspended' }));
    const [deleted, kept] = [sessions.slice(0, CONCURRENT / 2), sessions.slice(CONCURRENT / 2)];
    const deletes = deleted.map(({ id }) => context.sessions.delete(id));
    const sweep = expireIdle();
    await Promise.all(deletes);

    expect(await sweep).toEqual(expect.arrayContaining(idsOf(kept)));
    for (const { id } of deleted) expect(await stored(id)).toBeNull();
    for (const { id } of kept) expect((await stored(id))?.state).toBe('expired');
  });

  it('SES-10 expires or keeps a session when touch and a sweep race, and reports which', async () => {
    const sessions = await many(() => insertIdle(context, 2 * HOUR, { state: 'suspended' }));
    const [swept, ...touches] = await Promise.all([
      expireIdle(),
      ...sessions.map(({ id }) => context.sessions.touch(id).catch((error: unknown) => error)),
    ]);
    for (const [index, { id }] of sessions.entries()) {
      const expired = touches[index] instanceof SessionStateError;
      expect((await stored(id))?.state).toBe(expired ? 'expired' : 'active');
      expect(swept.includes(id)).toBe(expired);
    }
  });

  it('SES-19 expires sessions in any state that exceed the maximum lifetime, whatever their activity', async () => {
    const createdAt = await ago(2 * DAY);
    const old: Session[] = [];
    for (const state of ['created', 'active', 'suspended'] as const) {
      old.push(await insertIdle(context, 0, { state, createdAt }));
    }
    const young = await insertIdle(context, DAY / 2, { state: 'suspended' });
    const changes = await expireStale({ maxMs: DAY });

    expect(idsOf(changes.map(toSession)).sort()).toEqual(idsOf(old).sort());
    expect(changes.map(({ previousState }) => previousState).sort()).toEqual(['active', 'created', 'suspended']);
    for (const { id } of old) expect(await stored(id)).toMatchObject({ state: 'expired', version: 3 });
    expect(await stored(young.id)).toEqual(young);
  });

  it('SES-19 rejects a touch of a session past its lifetime before any sweep, and changes nothing', async () => {
    const before = await createActive(context);
    expect((await context.sessions.touch(before.id, { maxMs: HOUR })).session.state).toBe('active');
    const now = await stored(before.id);
    await context.elapse(SHORT);
    const error = await context.sessions.touch(before.id, { maxMs: SHORT - 1 }).catch((reason: unknown) => reason);

    expect(error).toBeInstanceOf(SessionStateError);
    expect(error).toMatchObject({ sessionId: before.id, currentState: 'expired', attemptedTransition: 'touch' });
    expect(await stored(before.id)).toEqual(now);
  });

  it('SES-19 rejects a turn for a session past its lifetime before any sweep', async () => {
    const lane = await TestLane.open(context);
    await context.elapse(SHORT);
    const before = await lane.snapshot();

    await expect(lane.accept('late', { maxSessionLifetimeMs: SHORT - 1 })).rejects.toMatchObject({
      code: 'SESSION_STATE',
      currentState: 'expired',
    });
    expect(await lane.snapshot()).toEqual(before);
    expect(await lane.queue('in time', { maxSessionLifetimeMs: HOUR })).toMatchObject({ status: 'queued' });
  });

  it('SES-11 deletes sessions that expired long enough ago, and returns their ids', async () => {
    const [old, recent] = [await ago(2 * DAY), await ago(DAY / 2)];
    const gone = await insertIdle(context, 3 * DAY, { state: 'expired', stateChangedAt: old });
    const kept = [
      // Idle for a long time, but expired recently.
      await insertIdle(context, 3 * DAY, { state: 'expired', stateChangedAt: recent }),
      await insertIdle(context, 3 * DAY, { state: 'suspended', stateChangedAt: old }),
      await insertIdle(context, 3 * DAY, { state: 'active', stateChangedAt: old }),
      await insertIdle(context, 3 * DAY, { state: 'created' }),
    ];

    expect(await context.sessions.purgeExpired(DAY, PLENTY)).toEqual([gone.id]);
    expect(await stored(gone.id)).toBeNull();
    for (const session of kept) expect(await stored(session.id)).toEqual(session);
    expect(await context.sessions.purgeExpired(DAY, PLENTY)).toEqual([]);
  });

  it('SES-11 deletes at most a batch at a time', async () => {
    const sessions = await many(() => insertIdle(context, 2 * DAY, { state: 'expired' }));
    const batches: string[][] = [];
    for (let n = 0; n < 4; n += 1) batches.push(await context.sessions.purgeExpired(DAY, 8));

    expect(batches.map(({ length }) => length)).toEqual([8, 8, 4, 0]);
    expect(batches.flat().sort()).toEqual(idsOf(sessions).sort());
  });

  it('SES-11 returns every session to exactly one of several purges, while others are deleted', async () => {
    const sessions = await many(() => insertIdle(context, 2 * DAY, { state: 'expired' }));
    const deleted = sessions.slice(0, 5);
    const purges = many(() => context.sessions.purgeExpired(DAY, 3));
    const removed = await Promise.all(deleted.map(({ id }) => context.sessions.delete(id)));
    const gone = [...(await purges).flat(), ...idsOf(deleted.filter((_, index) => removed[index]))];

    expect(gone.sort()).toEqual(idsOf(sessions).sort());
  });

  async function ago(ms: number): Promise<string> {
    const { createdAt } = await create(context);
    return new Date(Date.parse(createdAt) - ms).toISOString();
  }

  /** Suspends sessions and makes them idle for two hours. */
  async function aged(ids: readonly string[]): Promise<Session[]> {
    const then = await ago(2 * HOUR);
    const times = { createdAt: then, lastActivityAt: then };
    const sessions: Session[] = [];
    for (const id of ids) sessions.push(await context.sessions.update(id, { state: 'suspended', ...times }));
    return sessions;
  }
}

function toSession({ session }: SessionChange): Session {
  return session;
}
