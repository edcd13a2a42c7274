import { SessionStateError } from '../../ledger/session.errors.js';
import { type Session, type SurfaceRules } from '../../ledger/session.js';
import { create, createActive, HOUR, idsOf, insertIdle, PLENTY, RULES, TICK } from './session-fixtures.js';
import { type ConformanceContext } from './target.js';

const CONCURRENT = 20;

/** Tests of the races at the end of the spec's page on sessions: no change may be lost. */
export function describeSessionRaces(context: ConformanceContext): void {
  const stored = (id: string): Promise<Session | null> => context.sessions.fetchById(id);
  const many = <T>(make: (n: number) => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: CONCURRENT }, (_, n) => make(n)));

  it('SES-06 keeps every surface of concurrent attaches', async () => {
    const { id } = await create(context);
    await many((n) => context.sessions.attachSurface(id, `surface-${n}`, atMost(CONCURRENT)));
    const after = await stored(id);

    expect([...(after?.attachedSurfaces ?? [])].sort()).toEqual(names('surface').sort());
    expect(after?.version).toBe(1 + CONCURRENT);
  });

  it('SES-06 attaches a surface once, for any number of concurrent attaches', async () => {
    const { id } = await create(context);
    await many(() => context.sessions.attachSurface(id, 'web', atMost(1)));
    expect(await stored(id)).toMatchObject({ attachedSurfaces: ['web'], version: 2 });
  });

  it('SES-06 enforces the limit of surfaces for concurrent attaches', async () => {
    const { id } = await create(context);
    await Promise.allSettled(names('surface').map((name) => context.sessions.attachSurface(id, name, atMost(5))));
    expect((await stored(id))?.attachedSurfaces).toHaveLength(5);
  });

  it('SES-12 keeps every key of concurrent merges', async () => {
    const { id } = await create(context);
    await many((n) => context.sessions.mergeMetadata(id, { [`key-${n}`]: n }, PLENTY));
    const after = await stored(id);

    expect(Object.keys(after?.metadata ?? {}).sort()).toEqual(names('key').sort());
    expect(after?.version).toBe(1 + CONCURRENT);
  });

  it('SES-15 keeps all concurrent changes of different kinds to one session', async () => {
    const { id } = await create(context, { attachedSurfaces: names('old') });
    await context.elapse(TICK);
    await many((n) =>
      Promise.all([
        context.sessions.attachSurface(id, `new-${n}`, atMost(3 * CONCURRENT)),
        context.sessions.detachSurface(id, `old-${n}`),
        context.sessions.mergeMetadata(id, { [`key-${n}`]: n }, PLENTY),
      ]),
    );
    const { session } = await context.sessions.touch(id);

    expect([...session.attachedSurfaces].sort()).toEqual(names('new').sort());
    expect(Object.keys(session.metadata)).toHaveLength(CONCURRENT);
    expect(session.version).toBe(2 + 3 * CONCURRENT);
  });

  it('SES-08 ends expired when expire and touch race', async () => {
    const sessions = await many(() => createActive(context));
    await context.elapse(TICK);
    await Promise.all(
      sessions.map(async ({ id }, n) => {
        const touch = (): Promise<unknown> => context.sessions.touch(id);
        const expire = (): Promise<unknown> => context.sessions.expire(id);
        const race = n % 2 === 0 ? [touch(), expire()] : [expire(), touch()];
        const failures = (await Promise.allSettled(race)).filter((result) => result.status === 'rejected');
        expect(failures.every(({ reason }) => reason instanceof SessionStateError)).toBe(true);
      }),
    );
    for (const { id } of sessions) expect((await stored(id))?.state).toBe('expired');
  });

  it('SES-08 ends expired when expire and a sweep race', async () => {
    const sessions = await many(() => insertIdle(context, 2 * HOUR));
    const expires = sessions.map(
      ({ id }) =>
        () =>
          context.sessions.expire(id),
    );
    await Promise.all(around(expires, () => context.sessions.suspendStale(HOUR, PLENTY)));

    for (const { id } of sessions) expect((await stored(id))?.state).toBe('expired');
  });

  it('SES-09 ends active when touch and a sweep race', async () => {
    const sessions = await many(() => insertIdle(context, 2 * HOUR));
    const touches = sessions.map(
      ({ id }) =>
        () =>
          context.sessions.touch(id),
    );
    await Promise.all(around(touches, () => context.sessions.suspendStale(HOUR, PLENTY)));

    for (const { id } of sessions) expect((await stored(id))?.state).toBe('active');
  });

  it('SES-09 returns every stale session to exactly one of several sweeps', async () => {
    const sessions = await many(() => insertIdle(context, 2 * HOUR));
    const sweeps = await many(() => context.sessions.suspendStale(HOUR, 7));
    const rest = await context.sessions.suspendStale(HOUR, PLENTY);
    const swept = idsOf([...sweeps.flat(), ...rest]);

    expect(new Set(swept).size).toBe(swept.length);
    for (const { id } of sessions) {
      expect(swept).toContain(id);
      expect((await stored(id))?.state).toBe('suspended');
    }
  });

  it('SES-09 neither fails nor loses a session when a sweep and deletes race', async () => {
    const sessions = await many(() => insertIdle(context, 2 * HOUR));
    const [deleted, kept] = [sessions.slice(0, CONCURRENT / 2), sessions.slice(CONCURRENT / 2)];
    let swept: Session[] = [];
    const deletes = deleted.map(
      ({ id }) =>
        () =>
          context.sessions.delete(id),
    );
    await Promise.all(
      around(deletes, async () => {
        swept = await context.sessions.suspendStale(HOUR, PLENTY);
      }),
    );

    expect(idsOf(swept)).toEqual(expect.arrayContaining(idsOf(kept)));
    for (const { id } of deleted) expect(await stored(id)).toBeNull();
    for (const { id } of kept) expect((await stored(id))?.state).toBe('suspended');
  });
}

const atMost = (maxSurfaces: number): SurfaceRules => ({ ...RULES, maxSurfaces });

function names(prefix: string): string[] {
  return Array.from({ length: CONCURRENT }, (_, n) => `${prefix}-${n}`);
}

/** Starts half of the calls, then `middle`, then the other half, without waiting. */
function around(calls: readonly (() => Promise<unknown>)[], middle: () => Promise<unknown>): Promise<unknown>[] {
  const half = Math.floor(calls.length / 2);
  return [...calls.slice(0, half), middle, ...calls.slice(half)].map((call) => call());
}
