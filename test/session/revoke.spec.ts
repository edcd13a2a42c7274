import {
  createSessionStore,
  InvalidInputError,
  type Session,
  type SessionEvent,
  SessionNotFoundError,
  SessionStore,
  StoreUnavailableError,
} from 'nestjs-agent-sessions';
import { type AtomicSessionStoreAdapter } from 'nestjs-agent-sessions/adapter';
import { mintId } from '../../lib/common/ids.js';
import { type ConformanceTarget } from '../../lib/testing/index.js';
import { BEHAVIOUR_STORES, EMBEDDED_STORES } from '../support/stores.js';

describe.each(BEHAVIOUR_STORES)('revocation over $name', ({ open }) => {
  let target: ConformanceTarget;
  let store: SessionStore;
  let userId: string;
  let events: SessionEvent[];

  beforeAll(async () => {
    target = open();
    await target.adapter.init?.();
  });

  afterAll(async () => {
    await target.adapter.close?.();
  });

  beforeEach(() => {
    store = new SessionStore(target.adapter.sessions);
    userId = mintId();
    events = [];
    store.events.stream.subscribe((event) => events.push(event));
  });

  it('NST-18 ends every live session of the user in every workspace, and emits events', async () => {
    const created = await create();
    const active = await store.touch((await create('acme')).id);
    const suspended = await target.adapter.sessions.update((await create('globex')).id, { state: 'suspended' });
    const over = await store.expire((await create()).id);
    const other = await store.create({ userId: mintId() });
    events.length = 0;

    const revoked = await store.revokeAll(userId);

    expect(ids(revoked)).toEqual(ids([created, active, suspended]));
    for (const session of revoked) expect(await store.get(session.id)).toEqual(session);
    expect(await store.count({ userId, state: 'expired' })).toBe(4);
    expect(await store.get(over.id)).toEqual(over);
    expect(await store.get(other.id)).toEqual(other);
    expect(events).toHaveLength(3);
    for (const [before, previousState] of [[created, 'created'] as const, [active, 'active'] as const]) {
      const session = revoked.find(({ id }) => id === before.id);
      expect(events).toContainEqual({ type: 'expired', session, previousState, cause: 'revoked' });
    }
    expect(await store.revokeAll(userId)).toEqual([]);
  });

  it('NST-18 NST-24 keeps the excepted sessions, and those of other workspaces if one is given', async () => {
    const none = await create();
    const [asking, phone, laptop] = [await create('acme'), await create('acme'), await create('acme')];
    const elsewhere = await create('globex');

    expect(ids(await store.revokeAll(userId, { workspaceId: 'acme', except: [asking.id, phone.id] }))).toEqual(
      ids([laptop]),
    );
    expect(ids(await store.revokeAll(userId, { workspaceId: null }))).toEqual(ids([none]));
    expect(ids(await store.revokeAll(userId, { except: asking.id }))).toEqual(ids([phone, elsewhere]));
    expect(await store.get(asking.id)).toEqual(asking);
  });

  it('NST-18 keeps the child sessions of an excepted session', async () => {
    const [asking, other] = [await create(), await create()];
    const child = await store.create({ id: `${asking.id}/refunds`, userId });
    const ofOther = await store.create({ id: `${other.id}/refunds`, userId });

    expect(ids(await store.revokeAll(userId, { except: asking.id }))).toEqual(ids([other, ofOther]));
    expect(await store.get(child.id)).toEqual(child);
  });

  it('NST-18 revokes one session', async () => {
    const { id } = await store.touch((await create()).id);
    events.length = 0;

    const session = await store.revoke(id);
    expect(session).toMatchObject({ id, state: 'expired' });
    expect(await store.revoke(id)).toEqual(session);
    expect(events).toEqual([{ type: 'expired', session, previousState: 'active', cause: 'revoked' }]);
    await expect(store.revoke(mintId())).rejects.toBeInstanceOf(SessionNotFoundError);
  });

  const create = (workspaceId?: string): Promise<Session> =>
    store.create({ userId, ...(workspaceId === undefined ? {} : { workspaceId }) });
});

describe('revokeAll', () => {
  const [{ open }] = EMBEDDED_STORES;

  it('NST-18 ends more than a batch during concurrent changes, with few queries', async () => {
    const sessions = open().adapter.sessions as AtomicSessionStoreAdapter;
    let [looks, revokes, longest] = [0, 0, 0];
    const store = new SessionStore(
      differing(sessions, {
        fetchMany: async (query) => {
          const found = await sessions.fetchMany(query);
          looks += 1;
          longest = Math.max(longest, query.limit ?? 0);
          if (looks > 1) return found;
          // The longest idle session becomes the most recent, and another one is deleted.
          await store.touch(made[0].id);
          await store.delete(made[2].id);
          return found;
        },
        revoke: (id) => {
          revokes += 1;
          return sessions.revoke(id);
        },
      }),
    );
    const made: Session[] = [];
    for (let n = 0; n < 1200; n += 1) made.push(await store.create({ userId: 'ann' }));
    const spared = made.splice(600);
    await store.expire(made[1].id);

    expect(await store.revokeAll('ann', { except: ids(spared) })).toHaveLength(598);
    expect(await store.count({ userId: 'ann', state: ['created', 'active'] })).toBe(600);
    expect(looks).toBe(3);
    // Those that remain are 600; revoked ones make no page longer.
    expect(longest).toBeLessThan(600 + 510);
    expect(revokes).toBeLessThan(600);
  });

  it('NST-18 revokes the other sessions if the store fails for one, and rejects', async () => {
    const sessions = open().adapter.sessions as AtomicSessionStoreAdapter;
    const away = (id: string): boolean => id === made[0].id;
    const store = new SessionStore(
      differing(sessions, {
        revoke: (id) => (away(id) ? Promise.reject(new StoreUnavailableError('away')) : sessions.revoke(id)),
      }),
    );
    const made = [await store.create({ userId: 'ann' }), await store.create({ userId: 'ann' })];

    await expect(store.revokeAll('ann')).rejects.toBeInstanceOf(StoreUnavailableError);
    expect((await store.get(made[0].id))?.state).toBe('created');
    expect((await store.get(made[1].id))?.state).toBe('expired');
  });

  it('FIX-90 keeps a session of another user that gets the id of a session meanwhile', async () => {
    const sessions = open().adapter.sessions as AtomicSessionStoreAdapter;
    const store = new SessionStore(
      differing(sessions, {
        fetchMany: async (query) => {
          const found = await sessions.fetchMany(query);
          for (const { id } of found) {
            await store.delete(id);
            await store.create({ id, userId: 'bob' });
          }
          return found;
        },
      }),
    );
    const { id } = await store.create({ userId: 'ann' });

    expect(await store.revokeAll('ann')).toEqual([]);
    expect(await store.get(id)).toMatchObject({ userId: 'bob', state: 'created', version: 1 });
  });

  it('NST-18 terminates over a foreign store that returns stale sessions', async () => {
    const { sessions } = open().adapter;
    const stale = await new SessionStore(sessions).create({ userId: 'ann' });
    const store = createSessionStore({
      adapter: {
        insert: (session) => sessions.insert(session),
        fetchById: (id) => sessions.fetchById(id),
        fetchMany: async () => [stale],
        update: (id, patch) => sessions.update(id, patch),
        delete: (id) => sessions.delete(id),
      },
    });

    expect(await store.revokeAll('ann')).toMatchObject([{ id: stale.id, state: 'expired' }]);
  });

  it.each<[string, (store: SessionStore) => Promise<unknown>, string]>([
    ['no user', (store) => store.revokeAll(undefined as never), 'userId'],
    ['an empty user', (store) => store.revokeAll(''), 'userId'],
    ['an unknown option', (store) => store.revokeAll('ann', { but: 'a' } as never), 'options.but'],
    ['invalid ids', (store) => store.revokeAll('ann', { except: ['a', ''] }), 'options.except'],
    ['an empty workspace', (store) => store.revokeAll('ann', { workspaceId: '' }), 'options.workspaceId'],
    ['no session', (store) => store.revoke(undefined as never), 'sessionId'],
  ])('NST-18 rejects %s', async (_, call, path) => {
    const store = new SessionStore(open().adapter.sessions);
    const { id } = await store.create({ userId: 'ann' });
    await expect(call(store)).rejects.toBeInstanceOf(InvalidInputError);
    await expect(call(store)).rejects.toMatchObject({ path });
    expect((await store.get(id))?.state).toBe('created');
  });
});

/** Overrides some methods of a store. */
function differing(
  sessions: AtomicSessionStoreAdapter,
  methods: Partial<AtomicSessionStoreAdapter>,
): AtomicSessionStoreAdapter {
  return Object.assign(Object.create(sessions) as AtomicSessionStoreAdapter, methods);
}

function ids(sessions: readonly Session[]): string[] {
  return sessions.map(({ id }) => id).sort();
}
