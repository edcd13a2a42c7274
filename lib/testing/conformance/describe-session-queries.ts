import { encodeCursor } from '../../ledger/session.cursor.js';
import { type Session, type SessionState } from '../../ledger/session.js';
import { type SessionQuery } from '../../ledger/session-query.js';
import { create, createActive, HOSTILE_NAMES, HOUR, idsOf, insert, RULES, storeTime } from './session-fixtures.js';
import { type ConformanceContext } from './target.js';

/** Tests of fetchMany and count (SES-04). */
export function describeSessionQueries(context: ConformanceContext): void {
  const find = (query: SessionQuery): Promise<Session[]> => context.sessions.fetchMany(query);
  const count = (query: SessionQuery): Promise<number> => context.sessions.count(query);
  const expectFound = async (query: SessionQuery, expected: readonly Session[]): Promise<void> => {
    expect(idsOf(await find(query)).sort()).toEqual(idsOf(expected).sort());
    expect(await count(query)).toBe(expected.length);
  };

  it('SES-04 combines conditions with AND', async () => {
    const [userId, workspaceId] = [context.id(), context.id()];
    const inWorkspace = await create(context, { userId, workspaceId, attachedSurfaces: ['web', 'slack'] });
    const outside = await create(context, { userId, attachedSurfaces: ['web'] });
    const ofAnother = await create(context, { workspaceId, attachedSurfaces: ['slack'] });

    await expectFound({ userId }, [inWorkspace, outside]);
    await expectFound({ workspaceId }, [inWorkspace, ofAnother]);
    await expectFound({ userId, workspaceId }, [inWorkspace]);
    await expectFound({ userId, surfaceId: 'web' }, [inWorkspace, outside]);
    await expectFound({ workspaceId, surfaceId: 'slack', state: 'created' }, [inWorkspace, ofAnother]);
    await expectFound({ userId, workspaceId, surfaceId: 'phone' }, []);
    await expectFound({ userId: context.id() }, []);
  });

  it('SES-04 finds sessions by one state or several', async () => {
    const userId = context.id();
    const created = await create(context, { userId });
    const active = await createActive(context, { userId });
    const { id } = await create(context, { userId });
    const { session: expired } = await context.sessions.expire(id);

    await expectFound({ userId, state: 'active' }, [active]);
    await expectFound({ userId, state: ['created', 'expired'] }, [created, expired]);
    await expectFound({ userId, state: ['suspended'] }, []);
    await expectFound({ userId }, [created, active, expired]);
  });

  it('SES-04 finds a session by a surface while it is attached', async () => {
    const userId = context.id();
    const { id } = await create(context, { userId, attachedSurfaces: ['web'] });
    const { session: updated } = await context.sessions.attachSurface(id, 'slack', RULES);
    await expectFound({ userId, surfaceId: 'slack' }, [updated]);

    await context.sessions.detachSurface(id, 'slack');
    await expectFound({ userId, surfaceId: 'slack' }, []);
    await context.sessions.update(id, { attachedSurfaces: ['phone'] });
    await expectFound({ userId, surfaceId: 'web' }, []);
    await expectFound({ userId, surfaceId: 'phone' }, [updated]);
  });

  it('SES-15 finds a session once, with its updated times, and not after it is deleted', async () => {
    const userId = context.id();
    const session = await create(context, { userId });
    const times = { createdAt: '2020-02-02T02:02:02.020Z', lastActivityAt: '2020-02-03T02:02:02.020Z' };
    const updated = await context.sessions.update(session.id, times);
    await expectFound({ userId }, [updated]);

    await context.sessions.update(session.id, { createdAt: session.createdAt });
    await expectFound({ userId }, [{ ...updated, createdAt: session.createdAt }]);
    await context.sessions.delete(session.id);
    await expectFound({ userId }, []);
  });

  it('SES-04 applies activeAfter and activeBefore as exclusive bounds, to the millisecond', async () => {
    const userId = context.id();
    const at = await timeline(context);
    const [first, second, third] = [
      await insert(context, { userId, ...at(0) }),
      await insert(context, { userId, ...at(1) }),
      await insert(context, { userId, ...at(2) }),
    ];
    const middle = second.lastActivityAt;

    await expectFound({ userId, activeAfter: middle }, [third]);
    await expectFound({ userId, activeBefore: middle }, [first]);
    await expectFound({ userId, activeAfter: first.lastActivityAt, activeBefore: third.lastActivityAt }, [second]);
    await expectFound({ userId, activeAfter: middle, activeBefore: middle }, []);
  });

  it('SES-04 orders by last activity, then creation, newest first, then id', async () => {
    const { expected, query } = await sessionsInOrder(context);

    expect(idsOf(await find(query))).toEqual(expected);
    expect(idsOf(await find({ ...query, limit: 3 }))).toEqual(expected.slice(0, 3));
    expect(idsOf(await find({ ...query, limit: 1000 }))).toEqual(expected);
  });

  it('SES-04 finds sessions of all users in order, across states, each once', async () => {
    const times = { createdAt: '1999-01-01T00:00:00.000Z', activeBefore: '2000-01-01T00:00:00.000Z' };
    const states: SessionState[] = ['suspended', 'active', 'created', 'active', 'expired', 'suspended'];
    const sessions: Session[] = [];
    for (const [day, state] of states.entries()) {
      const lastActivityAt = `1999-01-0${9 - day}T00:00:00.000Z`;
      sessions.push(await insert(context, { state, createdAt: times.createdAt, lastActivityAt }));
    }
    const { activeBefore } = times;
    const own = async (query: SessionQuery): Promise<string[]> => {
      const ids = idsOf(sessions);
      return (await everyPage({ activeBefore, limit: 2, ...query })).filter((id) => ids.includes(id));
    };

    expect(await own({})).toEqual(idsOf(sessions));
    const [, second, , fourth, fifth] = idsOf(sessions);
    expect(await own({ state: ['expired', 'active'] })).toEqual([second, fourth, fifth]);
    expect(await own({ state: ['active', 'active'] })).toEqual([second, fourth]);
    for (const { id } of sessions) await context.sessions.delete(id);
  });

  it('SES-04 finds a session by its surface and its new user', async () => {
    const session = await create(context, { attachedSurfaces: ['web', 'phone'] });
    const userId = context.id();
    const moved = await context.sessions.update(session.id, { userId });

    await expectFound({ userId: session.userId, surfaceId: 'web' }, []);
    await expectFound({ userId, surfaceId: 'web' }, [moved]);
    const created = await context.sessions.create(
      { id: context.id(), userId, attachedSurfaces: ['phone'], metadata: {} },
      RULES,
    );
    expect(created.movedFrom).toMatchObject([{ id: session.id, attachedSurfaces: ['web'] }]);
  });

  it('SES-04 returns 50 sessions by default', async () => {
    const userId = context.id();
    await Promise.all(Array.from({ length: 53 }, () => create(context, { userId })));

    expect(await find({ userId })).toHaveLength(50);
    expect(await find({ userId, limit: 53 })).toHaveLength(53);
  });

  it('SES-04 pages by a cursor and returns every session once, for every page size', async () => {
    const { expected, query } = await sessionsInOrder(context);

    for (const limit of [1, 2, 3, expected.length, 100]) {
      expect(await everyPage({ ...query, limit })).toEqual(expected);
    }
  });

  it('SES-04 keeps the position of a cursor while sessions are touched, added and deleted', async () => {
    const { expected, query, sessions } = await sessionsInOrder(context);
    const firstPage = await find({ ...query, limit: 2 });
    const cursor = encodeCursor(firstPage[1]);

    await create(context, { userId: sessions[0].userId });
    await context.sessions.touch(firstPage[0].id);
    await context.sessions.delete(firstPage[1].id);
    await context.sessions.mergeMetadata(expected[2], { seen: true }, 1000);

    expect(await everyPage({ ...query, limit: 2, cursor })).toEqual(expected.slice(2));
  });

  it('SES-04 ignores limit and cursor when it counts', async () => {
    const { expected, query } = await sessionsInOrder(context);
    const [first] = await find({ ...query, limit: 1 });

    expect(await count(query)).toBe(expected.length);
    expect(await count({ ...query, limit: 1 })).toBe(expected.length);
    expect(await count({ ...query, limit: 1, cursor: encodeCursor(first) })).toBe(expected.length);
  });

  it('SES-04 compares names by every character and never as a pattern', async () => {
    // The user names are shared among tests, so use a separate workspace.
    const workspaceId = context.id();
    for (const name of HOSTILE_NAMES) {
      await create(context, { userId: name, workspaceId, attachedSurfaces: [name] });
    }
    for (const name of HOSTILE_NAMES) {
      const byUser = await find({ workspaceId, userId: name });
      expect(byUser.map(({ userId }) => userId)).toEqual([name]);
      const bySurface = await find({ workspaceId, surfaceId: name });
      expect(bySurface.map(({ attachedSurfaces }) => attachedSurfaces)).toEqual([[name]]);
      expect(await count({ workspaceId, userId: name, surfaceId: name })).toBe(1);
    }
  });

  it('SES-04 distinguishes workspaces by every character', async () => {
    const userId = context.id();
    for (const workspaceId of HOSTILE_NAMES) await create(context, { userId, workspaceId });
    for (const workspaceId of HOSTILE_NAMES) {
      const found = await find({ userId, workspaceId });
      expect(found.map((session) => session.workspaceId)).toEqual([workspaceId]);
    }
  });

  async function everyPage(query: SessionQuery): Promise<string[]> {
    const ids: string[] = [];
    let page = await find(query);
    while (page.length > 0 && ids.length < 1000) {
      ids.push(...idsOf(page));
      page = await find({ ...query, cursor: encodeCursor(page[page.length - 1]) });
    }
    return ids;
  }
}

/** Inserts sessions of one user out of order. Some of them have equal times. */
async function sessionsInOrder(
  context: ConformanceContext,
): Promise<{ sessions: readonly Session[]; expected: readonly string[]; query: SessionQuery }> {
  const userId = context.id();
  const at = await timeline(context);
  const name = context.id();
  const places: [id: string, createdAt: number, lastActivityAt: number][] = [
    ['c', 1, 5],
    ['a', 2, 5],
    ['B', 1, 5],
    ['b', 1, 5],
    ['newest', 0, 9],
    ['oldest', 0, 0],
    ['_', 1, 5],
    ['-', 1, 5],
    ['10', 1, 5],
    ['9', 1, 5],
  ];
  const sessions: Session[] = [];
  for (const [id, createdAt, lastActivityAt] of places) {
    const times = { createdAt: at(createdAt).createdAt, lastActivityAt: at(lastActivityAt).lastActivityAt };
    sessions.push(await insert(context, { id: `${name}.${id}`, userId, ...times }));
  }
  // Sessions with equal times are in ASCII order.
  const expected = ['newest', 'a', '-', '10', '9', 'B', '_', 'b', 'c', 'oldest'].map((id) => `${name}.${id}`);
  return { sessions, expected, query: { userId } };
}

/** Returns times an hour ago, one millisecond apart. */
async function timeline(
  context: ConformanceContext,
): Promise<(step: number) => Pick<Session, 'createdAt' | 'lastActivityAt'>> {
  const start = (await storeTime(context)) - HOUR;
  return (step) => {
    const time = new Date(start + step).toISOString();
    return { createdAt: time, lastActivityAt: time };
  };
}
