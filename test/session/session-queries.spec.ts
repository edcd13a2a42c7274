import {
  InvalidInputError,
  type Session,
  type SessionQuery,
  type SessionState,
  SessionStore,
} from 'nestjs-agent-sessions';
import { type ConformanceTarget } from '../../lib/testing/index.js';
import { mintId } from '../../lib/common/ids.js';
import { BEHAVIOUR_STORES } from '../support/stores.js';
import { badCursors, badNames, badTimes, forgedCursors } from './bad-inputs.js';

describe.each(BEHAVIOUR_STORES)('SessionStore queries over $name', ({ open }) => {
  let target: ConformanceTarget;
  let store: SessionStore;

  beforeAll(async () => {
    target = open();
    await target.adapter.init?.();
    store = new SessionStore(target.adapter.sessions);
  });

  afterAll(async () => {
    await target.adapter.close?.();
  });

  it('SES-04 accepts an empty query', async () => {
    const { id } = await store.create({ userId: mintId() });
    const left = { userId: undefined, state: undefined, cursor: undefined, limit: undefined, activeAfter: undefined };

    expect(idsOf(await store.find())).toContain(id);
    expect(idsOf(await store.find(left))).toContain(id);
    expect(await store.count()).toBe(await store.count(left));
  });

  it('SES-04 returns 50 by default, none for a limit of 0, and up to 1000', async () => {
    const { userId } = await users(53);

    expect(await store.find({ userId })).toHaveLength(50);
    expect(await store.find({ userId, limit: 0 })).toEqual([]);
    expect(await store.page({ userId, limit: 0 })).toEqual({ sessions: [] });
    expect(await store.find({ userId, limit: 1000 })).toHaveLength(53);
    expect(await store.count({ userId, limit: 0 })).toBe(53);
  });

  it.each([1, 3, 9, 10, 1000])('SES-04 returns every session once in pages of %p', async (limit) => {
    const { userId, ids } = await users(9);
    const pages: (readonly Session[])[] = [];
    let cursor: string | undefined;
    do {
      const page = await store.page({ userId, limit, ...(cursor === undefined ? {} : { cursor }) });
      pages.push(page.sessions);
      cursor = page.nextCursor;
    } while (cursor !== undefined && pages.length < 100);

    expect(idsOf(pages.flat()).sort()).toEqual([...ids].sort());
    expect(idsOf(pages.flat())).toEqual(idsOf(await store.find({ userId })));
    // The last page has no next cursor.
    expect(pages).toHaveLength(Math.ceil(9 / limit));
  });

  it('SES-04 returns pages of 50 by default', async () => {
    const { userId } = await users(51);
    const first = await store.page({ userId });
    const second = await store.page({ userId, cursor: first.nextCursor ?? '' });

    expect(first.sessions).toHaveLength(50);
    expect(second.sessions).toHaveLength(1);
    expect(second).not.toHaveProperty('nextCursor');
    expect(await store.page({ userId: mintId() })).toEqual({ sessions: [] });
  });

  it('SES-04 keeps the conditions of the previous page', async () => {
    const { userId, ids } = await users(4);
    await store.expire(ids[0]);
    const { sessions, nextCursor } = await store.page({ userId, state: 'created', limit: 2 });
    const rest = await store.page({ userId, state: 'created', limit: 2, cursor: nextCursor ?? '' });

    expect([...idsOf(sessions), ...idsOf(rest.sessions)].sort()).toEqual(ids.slice(1).sort());
  });

  it('SES-04 compares times in any time zone', async () => {
    const session = await store.create({ userId: mintId() });
    const { userId } = session;
    const before = new Date(Date.parse(session.createdAt) - 1);
    const inZone = (hours: number, zone: string) =>
      new Date(before.getTime() + hours * 3_600_000).toISOString().replace('Z', zone);

    for (const activeAfter of [before.toISOString(), inZone(9, '+09:00'), inZone(-5, '-0500')]) {
      expect(await store.find({ userId, activeAfter })).toEqual([session]);
      expect(await store.find({ userId, activeBefore: activeAfter })).toEqual([]);
    }
  });

  it('SES-04 finds sessions by state', async () => {
    const { userId, ids } = await users(4);
    const [, active, suspended, expired] = ids;
    await store.touch(active);
    await target.adapter.sessions.update(suspended, { state: 'suspended' });
    await store.expire(expired);
    const found = async (state: SessionState | SessionState[]) => idsOf(await store.find({ userId, state })).sort();

    expect(await found('active')).toEqual([active]);
    expect(await found(['suspended', 'expired'])).toEqual([suspended, expired].sort());
    expect(await found(['active', 'active'])).toEqual([active]);
  });

  it('SES-04 finds sessions without a workspace', async () => {
    const userId = mintId();
    await store.create({ userId, workspaceId: 'acme' });
    const outside = await store.create({ userId });

    expect(await store.find({ userId, workspaceId: null })).toEqual([outside]);
    expect(await store.count({ userId, workspaceId: null })).toBe(1);
    expect(await store.count({ userId })).toBe(2);
  });

  it.each<[what: string, query: unknown, path: string]>([
    ['null', null, 'query'],
    ['a string', 'ann', 'query'],
    ['an array', [], 'query'],
    ['a Map', new Map([['userId', 'ann']]), 'query'],
    ['an unknown key', { user: 'ann' }, 'query.user'],
    ['a key of another store', { offset: 5 }, 'query.offset'],
    ['a key named __proto__', JSON.parse('{"__proto__":{"limit":5}}'), 'query.__proto__'],
    ['a key named constructor', { constructor: 1 }, 'query.constructor'],
    ['a key named hasOwnProperty', { hasOwnProperty: 1 }, 'query.hasOwnProperty'],
    ...['userId', 'workspaceId', 'surfaceId'].flatMap((key) =>
      // A `workspaceId` of null is valid: it finds sessions without a workspace.
      [...badNames.filter((name) => key !== 'workspaceId' || name !== null), { $ne: '' }].map(
        (value): [string, unknown, string] => [
          `${key} ${JSON.stringify(value).slice(0, 20)}`,
          { [key]: value },
          `query.${key}`,
        ],
      ),
    ),
    ...['', 'Active', 'deleted', null, 7, [], ['active', ''], ['active', null], [['active']], {}].map(
      (state): [string, unknown, string] => [`state ${JSON.stringify(state)}`, { state }, 'query.state'],
    ),
    ...['activeAfter', 'activeBefore'].flatMap((key) =>
      badTimes.map((value): [string, unknown, string] => [`${key} ${String(value)}`, { [key]: value }, `query.${key}`]),
    ),
    ...[-1, 1.5, 1001, NaN, Infinity, '5', null, [5], 5n].map((limit): [string, unknown, string] => [
      `limit ${String(limit)}`,
      { limit },
      'query.limit',
    ]),
    ...badCursors.map((cursor): [string, unknown, string] => [
      `cursor ${String(cursor).slice(0, 40)}`,
      { cursor },
      'query.cursor',
    ]),
  ])('SES-04 SES-14 refuses %s instead of ignoring it', async (_, query, path) => {
    for (const method of ['find', 'page', 'count'] as const) {
      const error = await store[method](query as SessionQuery).then(
        () => `${method} should have refused it`,
        (reason: unknown) => reason,
      );
      expect(error).toBeInstanceOf(InvalidInputError);
      expect(error).toMatchObject({ code: 'INVALID_INPUT', path, name: 'InvalidInputError' });
    }
  });

  it.each(forgedCursors)('FIX-52 rejects a forged cursor with %s', async (_, cursor) => {
    for (const method of ['find', 'page', 'count'] as const) {
      await expect(store[method]({ cursor })).rejects.toMatchObject({ code: 'INVALID_INPUT', path: 'query.cursor' });
    }
  });

  it('FIX-52 accepts the cursor of every id that a session can have', async () => {
    const userId = mintId();
    const ids = ['Az09._:@/+=~-', 'x'.repeat(200)].map((id) => `${userId}${id}`.slice(0, 200));
    for (const id of ids) await store.create({ id, userId });
    const { sessions, nextCursor } = await store.page({ userId, limit: 1 });
    const rest = await store.page({ userId, cursor: nextCursor ?? '' });

    expect(idsOf([...sessions, ...rest.sessions]).sort()).toEqual(ids.sort());
  });

  /** Creates sessions of a user that no other test uses. */
  async function users(count: number): Promise<{ userId: string; ids: string[] }> {
    const userId = mintId();
    const sessions = await Promise.all(Array.from({ length: count }, () => store.create({ userId })));
    return { userId, ids: idsOf(sessions) };
  }
});

function idsOf(sessions: readonly Session[]): string[] {
  return sessions.map(({ id }) => id);
}
