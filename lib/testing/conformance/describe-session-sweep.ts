import { type Session } from '../../ledger/session.js';
import { create, HOUR, idsOf, insertAllIdle, insertIdle, PLENTY } from './session-fixtures.js';
import { type ConformanceContext } from './target.js';

/** Tests of suspendStale (SES-09). */
export function describeSessionSweep(context: ConformanceContext): void {
  const stored = (id: string): Promise<Session | null> => context.sessions.fetchById(id);
  /** Removes the sessions that other tests left behind. */
  const sweepRest = (): Promise<Session[]> => context.sessions.suspendStale(HOUR, PLENTY);

  it('SES-09 suspends the active sessions that were idle for too long, and returns them', async () => {
    await sweepRest();
    const stale = await insertIdle(context, 2 * HOUR);
    const fresh = await insertIdle(context, HOUR / 2);
    const created = await insertIdle(context, 2 * HOUR, { state: 'created' });
    const suspended = await insertIdle(context, 2 * HOUR, { state: 'suspended' });
    const expired = await insertIdle(context, 2 * HOUR, { state: 'expired' });

    const [swept, ...others] = await context.sessions.suspendStale(HOUR, PLENTY);

    expect(others).toEqual([]);
    expect(swept).toEqual({ ...stale, state: 'suspended', stateChangedAt: swept.stateChangedAt, version: 3 });
    expect((swept.stateChangedAt ?? '') > (stale.stateChangedAt ?? '')).toBe(true);
    expect(await stored(stale.id)).toEqual(swept);
    for (const session of [fresh, created, suspended, expired]) expect(await stored(session.id)).toEqual(session);
  });

  it('SES-09 suspends the longest idle sessions first, at most a batch at a time', async () => {
    await sweepRest();
    const [two, five, three, four] = await insertAllIdle(context, [2 * HOUR, 5 * HOUR, 3 * HOUR, 4 * HOUR]);
    const sweepTwo = async (): Promise<string[]> => idsOf(await context.sessions.suspendStale(HOUR, 2)).sort();

    expect(await sweepTwo()).toEqual([five.id, four.id].sort());
    expect(await sweepTwo()).toEqual([three.id, two.id].sort());
    expect(await sweepTwo()).toEqual([]);
  });

  it('SES-09 does not suspend a session that was idle for exactly the limit, to the millisecond', async () => {
    const { sessions } = context;
    const created = await Promise.all(Array.from({ length: 20 }, () => create(context)));
    // Some of these concurrent inserts get the same millisecond.
    const sweeps = await Promise.all(
      created.map(async ({ id }) => (await Promise.all([sessions.touch(id), sessions.suspendStale(0, PLENTY)]))[1]),
    );
    for (const { stateChangedAt, lastActivityAt } of sweeps.flat()) {
      expect(Date.parse(stateChangedAt ?? '')).toBeGreaterThan(Date.parse(lastActivityAt));
    }
  });

  it('SES-09 does not suspend a touched session', async () => {
    await sweepRest();
    const { id } = await insertIdle(context, 2 * HOUR);
    await context.sessions.touch(id);

    expect(await context.sessions.suspendStale(HOUR, PLENTY)).toEqual([]);
    expect(await stored(id)).toMatchObject({ state: 'active' });
  });
}
