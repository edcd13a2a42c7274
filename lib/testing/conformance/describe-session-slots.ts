import { SurfaceConflictError, SurfaceLimitError } from '../../ledger/session.errors.js';
import { type NewSession, type Session, type SurfacePolicy, type SurfaceRules } from '../../ledger/session.js';
import { type CreatedSession } from '../../ledger/session.store.js';
import { draft, HOUR, idsOf, insertIdle, RULES, TICK } from './session-fixtures.js';
import { type ConformanceContext } from './target.js';

const CONCURRENT = 20;
const MINUTE = 60_000;

/** Tests that a surface has one session per user and workspace (SES-07), also on concurrent creates (SES-16). */
export function describeSessionSlots(context: ConformanceContext): void {
  const stored = (id: string): Promise<Session | null> => context.sessions.fetchById(id);
  const by = (policy: SurfacePolicy): SurfaceRules => ({ ...RULES, policy });
  const create = (patch: Partial<NewSession>, policy: SurfacePolicy = 'share'): Promise<CreatedSession> =>
    context.sessions.create(draft(context, patch), by(policy));
  const many = <T>(make: (n: number) => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: CONCURRENT }, (_, n) => make(n)));
  const holders = (userId: string, surfaceId = 'web'): Promise<Session[]> =>
    context.sessions.fetchMany({ userId, surfaceId, state: ['created', 'active', 'suspended'] });

  /** Creates holders of a surface in every live state, and sessions that must not be affected. */
  async function slot(): Promise<{ owner: Partial<NewSession>; held: Session[]; others: Session[] }> {
    const [userId, workspaceId] = [context.id(), context.id()];
    const owner = { userId, workspaceId };
    const held: Session[] = [];
    for (const state of ['created', 'active', 'suspended'] as const) {
      const { session } = await create({ ...owner, attachedSurfaces: ['slack', 'web'] });
      held.push(await context.sessions.update(session.id, { state }));
    }
    const ended = await create({ ...owner, attachedSurfaces: ['web'] });
    const others = [
      (await context.sessions.expire(ended.session.id)).session,
      (await create({ ...owner, attachedSurfaces: ['phone'] })).session,
      (await create({ userId, attachedSurfaces: ['web'] })).session,
      (await create({ userId, workspaceId: context.id(), attachedSurfaces: ['web'] })).session,
      (await create({ workspaceId, attachedSurfaces: ['web'] })).session,
    ];
    return { owner, held, others };
  }

  async function expectMoved(held: readonly Session[], movedFrom: readonly Session[]): Promise<void> {
    const byId = (a: Session, b: Session): number => (a.id < b.id ? -1 : 1);
    const without = held.map((session) => ({
      ...session,
      attachedSurfaces: ['slack'],
      version: (session.version ?? 0) + 1,
    }));
    expect([...movedFrom].sort(byId)).toEqual(without.sort(byId));
    for (const session of without) expect(await stored(session.id)).toEqual(session);
  }

  it('SES-07 move: an attach detaches the surface from the live sessions of the same user and workspace', async () => {
    const { owner, held, others } = await slot();
    const { session: before } = await create(owner);
    await context.elapse(TICK);
    const { movedFrom, ...change } = await context.sessions.attachSurface(before.id, 'web', by('move'));

    expect(change).toEqual({
      session: { ...before, attachedSurfaces: ['web'], version: 2 },
      previousState: 'created',
      changed: true,
      detached: [],
    });
    await expectMoved(held, movedFrom);
    for (const session of others) expect(await stored(session.id)).toEqual(session);
  });

  it('SES-07 move: a create with a surface detaches it from them', async () => {
    const { owner, held, others } = await slot();
    const { session, created, movedFrom } = await create({ ...owner, attachedSurfaces: ['web'] }, 'move');

    expect(created).toBe(true);
    expect(await stored(session.id)).toEqual(session);
    await expectMoved(held, movedFrom);
    for (const other of others) expect(await stored(other.id)).toEqual(other);
  });

  it('SES-07 move: reports a session once that lost several surfaces', async () => {
    const userId = context.id();
    const { session: before } = await create({ userId, attachedSurfaces: ['web', 'phone', 'slack'] });
    const { movedFrom } = await create({ userId, attachedSurfaces: ['phone', 'web'] }, 'move');

    expect(movedFrom).toEqual([{ ...before, attachedSurfaces: ['slack'], version: 3 }]);
    expect(await stored(before.id)).toEqual(movedFrom[0]);
  });

  it('SES-07 move: a session without a workspace takes no surface from a workspace', async () => {
    const userId = context.id();
    const { session: inside } = await create({ userId, workspaceId: context.id(), attachedSurfaces: ['web'] });
    const { session: outside } = await create({ userId, attachedSurfaces: ['web'] });
    const { movedFrom } = await create({ userId, attachedSurfaces: ['web'] }, 'move');

    expect(idsOf(movedFrom)).toEqual([outside.id]);
    expect(await stored(inside.id)).toEqual(inside);
  });

  it('SES-07 move: takes nothing when the session is at its limit or expired', async () => {
    const userId = context.id();
    const { session: holder } = await create({ userId, attachedSurfaces: ['web'] });
    const { session: full } = await create({ userId, attachedSurfaces: ['phone'] });
    const { session: ended } = await create({ userId });
    await context.sessions.expire(ended.id);
    const attach = (id: string): Promise<unknown> =>
      context.sessions.attachSurface(id, 'web', { policy: 'move', maxSurfaces: 1, onLimit: 'reject' });

    await expect(attach(full.id)).rejects.toBeInstanceOf(SurfaceLimitError);
    await expect(attach(ended.id)).rejects.toMatchObject({ code: 'SESSION_STATE' });
    expect(await stored(holder.id)).toEqual(holder);
    expect(await stored(full.id)).toEqual(full);
  });

  it('SES-07 reject: rejects a surface that another live session holds, and changes nothing', async () => {
    const { owner, held, others } = await slot();
    const { session: before } = await create(owner);
    const given = draft(context, { ...owner, attachedSurfaces: ['web'] });
    const calls = [
      () => context.sessions.attachSurface(before.id, 'web', by('reject')),
      () => context.sessions.create(given, by('reject')),
    ];
    for (const call of calls) {
      const error = await call().catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(SurfaceConflictError);
      expect(error).toMatchObject({ surfaceId: 'web' });
      expect(idsOf(held)).toContain((error as SurfaceConflictError).heldBy);
    }

    expect(await stored(given.id)).toBeNull();
    for (const session of [before, ...held, ...others]) expect(await stored(session.id)).toEqual(session);
  });

  it('SES-07 reject: allows a surface that no other live session holds', async () => {
    const { others } = await slot();
    const [ended] = others;
    const owner = { userId: context.id(), workspaceId: ended.workspaceId, attachedSurfaces: ['web'] };
    const first = await create(owner, 'reject');
    expect(first).toMatchObject({ created: true, movedFrom: [] });

    await context.sessions.detachSurface(first.session.id, 'web');
    const { session: second } = await create(owner, 'reject');
    await context.sessions.expire(second.id);
    const { changed, movedFrom } = await context.sessions.attachSurface(first.session.id, 'web', by('reject'));
    expect({ changed, movedFrom }).toEqual({ changed: true, movedFrom: [] });
  });

  describe.each([
    ['is past its lifetime', 'active', { maxMs: MINUTE }],
    ['was suspended and idle for too long', 'suspended', { ttlMs: HOUR * 9, idleMs: MINUTE }],
    ['was never used', 'created', { ttlMs: HOUR * 9, idleMs: MINUTE }],
    ['was active and idle for longer than its TTL', 'active', { ttlMs: MINUTE, idleMs: MINUTE }],
  ] as const)('FIX-44 reject: a session that %s', (_, state, lifetime) => {
    const rules: SurfaceRules = { ...by('reject'), lifetime };
    const old = async (): Promise<Session> => {
      const attachedSurfaces = ['slack', 'web'];
      return insertIdle(context, HOUR, { userId: context.id(), state, attachedSurfaces });
    };
    const lost = ({ version = 0, ...session }: Session): Session => ({
      ...session,
      attachedSurfaces: ['slack'],
      version: version + 1,
    });

    it('FIX-44 loses its surface to a session that is created', async () => {
      const holder = await old();
      const given = draft(context, { userId: holder.userId, attachedSurfaces: ['web'] });
      const { movedFrom } = await context.sessions.create(given, rules);

      expect(movedFrom).toEqual([lost(holder)]);
      expect(await stored(holder.id)).toEqual(lost(holder));
      expect(await holders(holder.userId)).toMatchObject([{ id: given.id }]);
    });

    it('FIX-44 loses its surface to a session that is created or adopted', async () => {
      const holder = await old();
      const given = draft(context, { userId: holder.userId, attachedSurfaces: ['web'] });
      const created = await context.sessions.createOrAdopt(given, rules, MINUTE);

      expect(created).toMatchObject({ created: true, session: { id: given.id } });
      expect(created.movedFrom).toEqual([lost(holder)]);
    });

    it('FIX-44 loses its surface to a session that attaches it', async () => {
      const holder = await old();
      const { session: other } = await create({ userId: holder.userId });
      const { movedFrom, session } = await context.sessions.attachSurface(other.id, 'web', rules);

      expect(session.attachedSurfaces).toEqual(['web']);
      expect(movedFrom).toEqual([lost(holder)]);
      expect(await stored(holder.id)).toEqual(lost(holder));
    });

    it('FIX-44 keeps its surface within longer limits', async () => {
      const holder = await old();
      const given = draft(context, { userId: holder.userId, attachedSurfaces: ['web'] });
      for (const longer of [{ ttlMs: MINUTE }, { ttlMs: 1, idleMs: HOUR * 2, maxMs: HOUR * 2 }]) {
        const call = context.sessions.create(given, { ...by('reject'), lifetime: longer });
        await expect(call).rejects.toBeInstanceOf(SurfaceConflictError);
      }
      expect(await stored(holder.id)).toEqual(holder);
    });
  });

  it('FIX-44 keeps the surface of an active session until its TTL has passed', async () => {
    const holder = await insertIdle(context, HOUR, { userId: context.id(), attachedSurfaces: ['web'] });
    const given = draft(context, { userId: holder.userId, attachedSurfaces: ['web'] });
    const rules: SurfaceRules = { ...by('reject'), lifetime: { ttlMs: 2 * HOUR, idleMs: MINUTE } };

    await expect(context.sessions.create(given, rules)).rejects.toMatchObject({ heldBy: holder.id });
  });

  it('FIX-44 attaches no surface to a session past its lifetime', async () => {
    const old = await insertIdle(context, HOUR, { userId: context.id(), attachedSurfaces: ['web'] });
    for (const surface of ['web', 'slack']) {
      const call = context.sessions.attachSurface(old.id, surface, { ...RULES, lifetime: { maxMs: MINUTE } });
      await expect(call).rejects.toMatchObject({ code: 'SESSION_STATE', currentState: 'expired' });
    }
    expect(await stored(old.id)).toEqual(old);
  });

  it('FIX-44 leaves one holder when an idle session is touched while other sessions take its surface', async () => {
    const holder = await insertIdle(context, HOUR, { userId: context.id(), attachedSurfaces: ['web'] });
    const rules: SurfaceRules = { ...by('reject'), lifetime: { ttlMs: MINUTE, idleMs: MINUTE } };
    await Promise.all([
      ...Array.from({ length: 5 }, () => context.sessions.touch(holder.id, { ttlMs: MINUTE })),
      ...Array.from({ length: 5 }, () =>
        context.sessions
          .create(draft(context, { userId: holder.userId, attachedSurfaces: ['web'] }), rules)
          .catch((error: unknown) => expect(error).toBeInstanceOf(SurfaceConflictError)),
      ),
    ]);

    expect(await holders(holder.userId)).toHaveLength(1);
  });

  it('SES-07 share: lets several sessions hold a surface', async () => {
    const { owner, held } = await slot();
    const { session: before } = await create(owner);
    const { session, movedFrom } = await context.sessions.attachSurface(before.id, 'web', by('share'));

    expect(movedFrom).toEqual([]);
    expect(
      idsOf(await context.sessions.fetchMany({ ...owner, surfaceId: 'web', state: session.state })).sort(),
    ).toEqual([before.id, held[0].id].sort());
    for (const other of held) expect(await stored(other.id)).toEqual(other);
  });

  it('SES-07 leaves one holder when many sessions attach a surface at once', async () => {
    const userId = context.id();
    const sessions = await many(async () => (await create({ userId })).session);
    const changes = await Promise.all(sessions.map(({ id }) => context.sessions.attachSurface(id, 'web', by('move'))));

    expect(await holders(userId)).toHaveLength(1);
    // Each of the other sessions had the surface, and was reported once to have lost it.
    const lost = idsOf(changes.flatMap(({ movedFrom }) => movedFrom));
    const [holder] = await holders(userId);
    expect(lost.sort()).toEqual(idsOf(sessions.filter(({ id }) => id !== holder.id)).sort());
  });

  it('SES-07 leaves one holder when many sessions are created with a surface at once', async () => {
    const userId = context.id();
    await many(() => create({ userId, attachedSurfaces: ['web'] }, 'move'));

    expect(await holders(userId)).toHaveLength(1);
    expect(await context.sessions.count({ userId })).toBe(CONCURRENT);
  });

  it('SES-07 reject: grants a surface to exactly one of many concurrent sessions', async () => {
    const userId = context.id();
    const sessions = await many(async () => (await create({ userId })).session);
    const results = await Promise.allSettled(
      sessions.map(({ id }) => context.sessions.attachSurface(id, 'web', by('reject'))),
    );
    const reasons = results.flatMap((result): unknown[] => (result.status === 'rejected' ? [result.reason] : []));

    expect(reasons).toHaveLength(CONCURRENT - 1);
    expect(reasons.every((reason) => reason instanceof SurfaceConflictError)).toBe(true);
    expect(await holders(userId)).toHaveLength(1);
  });

  describe('createOrAdopt', () => {
    const adopt = (patch: Partial<NewSession>, recentMs = MINUTE): Promise<CreatedSession> =>
      context.sessions.createOrAdopt(draft(context, patch), by('move'), recentMs);

    it.each([[['web']], [[]]])(
      'SES-16 returns one session to many concurrent callers, with the surfaces %j',
      async (surfaces) => {
        const userId = context.id();
        const results = await many(() => adopt({ userId, attachedSurfaces: surfaces }));
        const [session, ...others] = await context.sessions.fetchMany({ userId });

        expect(others).toEqual([]);
        expect(session).toMatchObject({ state: 'created', attachedSurfaces: surfaces, version: 1 });
        for (const result of results) expect(result).toMatchObject({ session, movedFrom: [] });
        expect(results.filter(({ created }) => created)).toHaveLength(1);
      },
    );

    it('SES-16 adopts no session of another user, workspace or surface, and no expired or older one', async () => {
      const [userId, workspaceId] = [context.id(), context.id()];
      const given = { userId, workspaceId, attachedSurfaces: ['web'] };
      const { session: ended } = await create(given);
      await context.sessions.expire(ended.id);
      const old = (await create(given)).session;
      await context.elapse(TICK);
      await create({ ...given, attachedSurfaces: ['slack'] });
      await create({ ...given, attachedSurfaces: [] });
      await create({ userId, attachedSurfaces: ['web'] });
      await create({ workspaceId, attachedSurfaces: ['web'] });

      const { session, created, movedFrom } = await adopt(given, 0);
      expect(created).toBe(true);
      expect(await stored(session.id)).toEqual(session);
      expect(movedFrom).toEqual([{ ...old, attachedSurfaces: [], version: 2 }]);
    });

    it('SES-16 adopts only a session without surfaces when the caller names no surface', async () => {
      const userId = context.id();
      await create({ userId, attachedSurfaces: ['web'] });
      const first = await adopt({ userId });
      const second = await adopt({ userId });

      expect(first.created).toBe(true);
      expect(second).toEqual({ session: first.session, created: false, movedFrom: [] });
    });

    it('SES-16 does not change the session that it adopts', async () => {
      const userId = context.id();
      const { session } = await create({ userId, attachedSurfaces: ['web'], metadata: { mine: true } });
      const result = await adopt({ userId, attachedSurfaces: ['web'], metadata: { theirs: true } });

      expect(result).toEqual({ session, created: false, movedFrom: [] });
      expect(await stored(session.id)).toEqual(session);
    });
  });
}
