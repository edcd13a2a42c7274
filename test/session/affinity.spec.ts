import {
  type AffinityResolver,
  type CreateSessionInput,
  defaultAffinityResolver,
  type InboundMessage,
  InvalidInputError,
  resolveSession,
  type Session,
  SessionStore,
} from 'nestjs-agent-sessions';
import { type ConformanceTarget } from '../../lib/testing/index.js';
import { mintId } from '../../lib/common/ids.js';
import { BEHAVIOUR_STORES } from '../support/stores.js';

// SES-17: uses only the root entry, without Nest.
describe.each(BEHAVIOUR_STORES)('affinity over $name', ({ open }) => {
  let target: ConformanceTarget;
  let store: SessionStore;
  let resolver: Required<AffinityResolver>;
  let userId: string;

  beforeAll(async () => {
    target = open();
    await target.adapter.init?.();
    store = new SessionStore(target.adapter.sessions);
    resolver = defaultAffinityResolver(store);
  });

  afterAll(async () => {
    await target.adapter.close?.();
  });

  beforeEach(() => {
    userId = mintId();
  });

  const resolve = (message: Partial<InboundMessage> = {}) => resolveSession({ userId, ...message }, store, resolver);

  it('SES-16 creates a session if there is none to continue', async () => {
    const session = await resolve({ workspaceId: 'acme', surfaceId: 'web' });

    expect(session).toMatchObject({
      userId,
      workspaceId: 'acme',
      state: 'created',
      attachedSurfaces: ['web'],
      version: 1,
    });
    expect(await store.get(session.id)).toEqual(session);
    expect(await resolve()).toMatchObject({ userId, state: 'created', attachedSurfaces: [] });
  });

  it('SES-16 continues a session, touches it, and attaches the surface', async () => {
    const { id } = await store.create({ userId });
    const session = await resolve({ surfaceId: 'web' });

    expect(session).toMatchObject({ id, state: 'active', attachedSurfaces: ['web'] });
    expect(await store.get(id)).toEqual(session);
    expect(await store.count({ userId })).toBe(1);
  });

  it('SES-16 uses the session that a message names if it belongs to the user', async () => {
    const named = await store.create({ userId });
    await touched();

    expect(await resolve({ sessionId: named.id })).toMatchObject({ id: named.id, state: 'active' });
  });

  it("SES-16 does not touch a session that is another user's, another workspace's, expired or unknown", async () => {
    const foreign = await store.create({ userId: mintId(), workspaceId: 'acme' });
    const elsewhere = await store.create({ userId, workspaceId: 'other' });
    const nowhere = await store.create({ userId });
    const over = await store.expire((await store.create({ userId, workspaceId: 'acme' })).id);

    for (const before of [foreign, elsewhere, nowhere, over]) {
      const session = await resolve({ workspaceId: 'acme', sessionId: before.id });
      expect(session.id).not.toBe(before.id);
      expect(session).toMatchObject({ userId, workspaceId: 'acme' });
      expect(await store.get(before.id)).toEqual(before);
    }
    expect((await resolve({ sessionId: mintId() })).id).toBe(nowhere.id);
  });

  it('SES-16 prefers the session that holds the surface to a more recent one', async () => {
    const holder = await store.create({ userId, initialSurfaceId: 'web' });
    const recent = await touched();

    expect((await resolver.resolve(userId, 'web'))?.id).toBe(holder.id);
    expect((await resolver.resolve(userId, 'slack'))?.id).toBe(recent.id);
    expect((await resolver.resolve(userId))?.id).toBe(recent.id);
  });

  it('SES-16 prefers active, then suspended, then created sessions, and continues no expired one', async () => {
    const created = await store.create({ userId });
    const suspended = await insert('suspended', 3);
    const active = await insert('active', 9);
    const order: (string | undefined)[] = [];
    for (let n = 0; n < 4; n += 1) {
      const found = await resolver.resolve(userId);
      order.push(found?.id);
      if (found) await store.expire(found.id);
    }
    expect(order).toEqual([active.id, suspended.id, created.id, undefined]);
  });

  it('SES-16 prefers the most recently active of several', async () => {
    const older = await insert('active', 9);
    const newer = await insert('active', 3);
    const oldest = await insert('active', 20);
    expect((await resolver.resolve(userId))?.id).toBe(newer.id);
    await store.touch(oldest.id);
    expect((await resolver.resolve(userId))?.id).toBe(oldest.id);
    expect(await store.get(older.id)).toEqual(older);
  });

  it('SES-16 stays in the workspace of the message, or without a workspace if it names none', async () => {
    const acme = await store.create({ userId, workspaceId: 'acme' });
    const none = await store.create({ userId });
    await touched({ workspaceId: 'other' });

    expect((await resolver.resolveMessage({ userId, workspaceId: 'acme' }))?.id).toBe(acme.id);
    expect((await resolver.resolveMessage({ userId }))?.id).toBe(none.id);
    expect(await resolver.resolveMessage({ userId, workspaceId: 'third' })).toBeUndefined();
    expect((await resolver.resolve(userId))?.id).toBe(none.id);
  });

  it('SES-16 finds a session without a workspace among many with one', async () => {
    const own = await store.create({ userId });
    await Promise.all(Array.from({ length: 120 }, () => store.create({ userId, workspaceId: 'acme' })));
    await target.adapter.sessions.update(own.id, { lastActivityAt: '2001-01-01T00:00:00.000Z' });

    expect((await resolver.resolve(userId))?.id).toBe(own.id);
  });

  it('SES-16 finds no session of another user without a user', async () => {
    await store.create({ userId });

    await expect(resolver.resolve(undefined as never)).rejects.toThrow('userId');
    await expect(resolver.resolveMessage?.({ userId: undefined as never })).rejects.toThrow('userId');
  });

  it('SES-16 FIX-43 calls a custom resolver with user and surface, or with the message', async () => {
    const asked: unknown[] = [];
    const mine = await store.create({ userId, workspaceId: 'acme' });
    const message = { userId, surfaceId: 'web', workspaceId: 'acme' };
    const own: AffinityResolver = {
      resolve: async (...question: unknown[]) => {
        asked.push(question);
        return mine;
      },
    };
    const aware: AffinityResolver = {
      resolve: () => Promise.reject(new Error('The message says more.')),
      resolveMessage: async (...question) => {
        asked.push(question);
        return mine;
      },
    };

    expect(await resolveSession(message, store, own)).toMatchObject({ id: mine.id, attachedSurfaces: ['web'] });
    expect(await resolveSession(message, store, aware)).toMatchObject({ id: mine.id });
    expect(asked).toEqual([[userId, 'web'], [message]]);
  });

  it('FIX-43 starts a new session for each message when the resolver returns null', async () => {
    const own: AffinityResolver = { resolve: async () => null };
    const ids = await Promise.all([1, 2, 3].map(async () => (await resolveSession({ userId }, store, own)).id));

    expect(new Set(ids).size).toBe(3);
  });

  it("FIX-48 never touches or returns another user's session, whatever the resolver returns", async () => {
    const foreign = await store.create({ userId: mintId() });
    const elsewhere = await store.create({ userId, workspaceId: 'other' });
    const choices = [foreign, { ...foreign, userId }, { ...elsewhere, workspaceId: 'acme' }];
    for (const choice of choices) {
      const own: AffinityResolver = { resolve: async () => choice };
      const session = await resolveSession({ userId, workspaceId: 'acme', surfaceId: 'web' }, store, own);

      expect(session).toMatchObject({ userId, workspaceId: 'acme' });
    }
    expect(await store.get(foreign.id)).toEqual(foreign);
    expect(await store.get(elsewhere.id)).toEqual(elsewhere);
  });

  it('FIX-49 gets or creates one session for concurrent calls through two stores', async () => {
    const id = mintId();
    const stores = [store, new SessionStore(target.adapter.sessions)];
    const input = { id, userId, workspaceId: 'acme', initialSurfaceId: 'web', metadata: { a: 1 } };
    const sessions = await many((n) => stores[n % 2].getOrCreate({ ...input, metadata: { a: n } }));

    expect(new Set(sessions.map((session) => JSON.stringify(session))).size).toBe(1);
    expect(await store.get(id)).toEqual(sessions[0]);
    expect(await store.touch(id)).toMatchObject({ version: 2 });
    expect(await store.getOrCreate({ id, userId, workspaceId: 'acme' })).toMatchObject({ state: 'active', version: 2 });
  });

  it('FIX-49 rejects a session of another user or workspace as unknown, and one that has ended', async () => {
    const { id } = await store.create({ userId, workspaceId: 'acme' });
    const { id: erased } = await store.create({ userId });
    await store.erase(erased);
    const codeOf = (input: CreateSessionInput & { id: string }) =>
      store.getOrCreate(input).then(
        () => 'none',
        (error: { code: string }) => error.code,
      );

    expect(await codeOf({ id, userId: mintId(), workspaceId: 'acme' })).toBe('SESSION_NOT_FOUND');
    expect(await codeOf({ id, userId })).toBe('SESSION_NOT_FOUND');
    expect(await codeOf({ id: erased, userId })).toBe('SESSION_CONFLICT');
    expect(await codeOf({ userId } as { id: string; userId: string })).toBe('INVALID_INPUT');
    await store.expire(id);
    expect(await codeOf({ id, userId, workspaceId: 'acme' })).toBe('SESSION_STATE');
  });

  it('SES-17 rejects a message with malformed ids, and stores nothing', async () => {
    await expect(resolve({ sessionId: "'; --" })).rejects.toBeInstanceOf(InvalidInputError);
    await expect(resolve({ surfaceId: '' })).rejects.toBeInstanceOf(InvalidInputError);
    await expect(resolve({ workspaceId: '\ud83d' })).rejects.toBeInstanceOf(InvalidInputError);
    await expect(resolve({ userId: '' })).rejects.toBeInstanceOf(InvalidInputError);
    expect(await store.count({ userId })).toBe(0);
  });

  const many = <T>(make: (n: number) => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: 20 }, (_, n) => make(n)));

  it.each(['web', undefined])(
    'SES-16 returns one session to concurrent messages, through the surface %s',
    async (surfaceId) => {
      const surface = surfaceId === undefined ? {} : { surfaceId };
      const resolved = await many(() => resolve({ workspaceId: 'acme', ...surface }));
      const [session, ...others] = await store.find({ userId });

      expect(others).toEqual([]);
      expect(session).toMatchObject({ workspaceId: 'acme', attachedSurfaces: surfaceId === undefined ? [] : ['web'] });
      expect(new Set(resolved.map(({ id }) => id))).toEqual(new Set([session.id]));
    },
  );

  it('SES-16 returns one session to concurrent messages through two stores over one adapter', async () => {
    const stores = [store, new SessionStore(target.adapter.sessions)];
    const resolved = await many((n) => {
      const one = stores[n % 2];
      return resolveSession({ userId, surfaceId: 'web' }, one, defaultAffinityResolver(one));
    });

    expect(new Set(resolved.map(({ id }) => id)).size).toBe(1);
    expect(await store.count({ userId })).toBe(1);
  });

  it('SES-16 creates a session for each user and workspace without one', async () => {
    const users = await many(() => Promise.resolve(mintId()));
    const resolved = await Promise.all([
      ...users.map((user) => resolve({ userId: user, surfaceId: 'web' })),
      ...users.map((user) => resolve({ userId: user, surfaceId: 'web', workspaceId: 'acme' })),
    ]);
    expect(new Set(resolved.map(({ id }) => id)).size).toBe(40);
  });

  it('SES-16 returns the existing session, touched, to concurrent messages', async () => {
    const { id } = await store.create({ userId, initialSurfaceId: 'web' });
    const resolved = await many(() => resolve({ surfaceId: 'web' }));

    expect(resolved.every((session) => session.id === id && session.state === 'active')).toBe(true);
    expect(await store.count({ userId })).toBe(1);
  });

  it.each(['touch', 'attachSurface'] as const)(
    'SES-16 creates a new session if the one it found ends before %s',
    async (method) => {
      const before = await store.create({ userId });
      const ending = new SessionStore(target.adapter.sessions);
      ending[method] = async (id: string, surfaceId?: unknown) => {
        await store.expire(before.id);
        return method === 'touch' ? store.touch(id) : store.attachSurface(id, String(surfaceId));
      };
      const session = await resolveSession({ userId, surfaceId: 'web' }, ending, resolver);

      expect(session.id).not.toBe(before.id);
      expect(session).toMatchObject({ userId, state: 'created', attachedSurfaces: ['web'] });
      expect(await store.get(before.id)).toMatchObject({ state: 'expired', attachedSurfaces: [] });
    },
  );

  it('SES-16 creates a new session if the one it found is deleted before the touch', async () => {
    const before = await store.create({ userId });
    const found: AffinityResolver = {
      resolve: async () => {
        await store.delete(before.id);
        return before;
      },
    };
    const session = await resolveSession({ userId }, store, found);

    expect(session).toMatchObject({ userId, state: 'created' });
    expect(session.id).not.toBe(before.id);
  });

  it('FIX-90 creates a new session if the one it found is deleted and its id created again before the touch', async () => {
    const before = await store.create({ userId });
    const replacing = new SessionStore(target.adapter.sessions);
    replacing.touch = async (id: string) => {
      await store.delete(id);
      await store.create({ id, userId: mintId() });
      return store.touch(id);
    };
    const session = await resolveSession({ userId, surfaceId: 'web' }, replacing, resolver);

    expect(session).toMatchObject({ userId, state: 'created', attachedSurfaces: ['web'] });
    expect(session.id).not.toBe(before.id);
    expect(await store.get(before.id)).toMatchObject({ attachedSurfaces: [] });
  });

  it('FIX-90 attaches no surface to a session that gets the id of the one it found after the touch', async () => {
    const before = await store.create({ userId });
    const replacing = new SessionStore(target.adapter.sessions);
    replacing.touch = async (id: string) => {
      const touched = await store.touch(id);
      await store.delete(id);
      await store.create({ id, userId: mintId() });
      return touched;
    };
    const session = await resolveSession({ userId, surfaceId: 'web' }, replacing, resolver);

    expect(session).toMatchObject({ userId, state: 'created', attachedSurfaces: ['web'] });
    expect(session.id).not.toBe(before.id);
    expect(await store.get(before.id)).toMatchObject({ attachedSurfaces: [], version: 1 });
  });

  it('SES-16 finds the session to continue among 1,000', async () => {
    const insertMany = Array.from({ length: 998 }, () => insert('suspended', 5));
    await Promise.all(insertMany);
    const holder = await store.create({ userId, initialSurfaceId: 'web' });
    await target.adapter.sessions.update(holder.id, { lastActivityAt: '2001-01-01T00:00:00.000Z' });
    const active = await insert('active', 50);

    expect(await resolve({ surfaceId: 'web' })).toMatchObject({ id: holder.id, state: 'active' });
    await store.expire(holder.id);
    expect(await resolve({ surfaceId: 'web' })).toMatchObject({ id: active.id, attachedSurfaces: ['web'] });
    expect(await store.count({ userId })).toBe(1000);
  });

  it('SES-16 BOT-50 never continues the session of an agent that was used as a tool', async () => {
    const parent = await store.create({ userId, initialSurfaceId: 'web' });
    await Promise.all(Array.from({ length: 60 }, (_, n) => insert('active', n + 1, { parentSessionId: parent.id })));
    const own = await insert('active', 100);

    expect((await resolver.resolve(userId))?.id).toBe(own.id);
    expect(await resolve({ surfaceId: 'slack' })).toMatchObject({ id: own.id, attachedSurfaces: ['slack'] });
    for (const { id } of [parent, own]) await store.expire(id);
    const next = await resolve({ surfaceId: 'web' });
    expect(next).toMatchObject({ state: 'created', attachedSurfaces: ['web'], metadata: {} });
    expect(await store.count({ userId, state: 'active', surfaceId: 'web' })).toBe(0);
  });

  it('SES-16 BOT-50 does not adopt the session of an agent that was used as a tool', async () => {
    const parent = await store.create({ userId, initialSurfaceId: 'web' });
    const child = await store.create({ userId, metadata: { parentSessionId: parent.id } });
    const made = await store.createOrAdopt({ userId, metadata: { made: true } });

    expect(made).toMatchObject({ state: 'created', metadata: { made: true } });
    expect((await store.createOrAdopt({ userId, initialSurfaceId: 'web' })).id).toBe(parent.id);
    expect(await store.get(child.id)).toEqual(child);
    expect(await store.count({ userId })).toBe(3);
  });

  it('SES-16 SES-19 ignores the session that a message names if it exceeds its lifetime but was not swept', async () => {
    const hour = 3_600_000;
    const mortal = new SessionStore(target.adapter.sessions, { maxLifetimeMs: hour, surfacePolicy: 'reject' });
    const old = await insert('active', 2);
    const current = await mortal.create({ userId, initialSurfaceId: 'web' });
    const ask = () =>
      resolveSession({ userId, surfaceId: 'web', sessionId: old.id }, mortal, defaultAffinityResolver(mortal));

    expect(await ask()).toMatchObject({ id: current.id, state: 'active', attachedSurfaces: ['web'] });
    await store.expire(old.id);
    expect((await ask()).id).toBe(current.id);
  });

  it('SES-16 SES-19 continues the newer session if an older one exceeds its lifetime but was not swept', async () => {
    const mortal = new SessionStore(target.adapter.sessions, { maxLifetimeMs: 3_600_000 });
    const old = await insert('active', 2);
    // The lifetime uses the clock of this process, not that of the memory store.
    const then = new Date(Date.now() - 7_200_000).toISOString();
    await target.adapter.sessions.update(old.id, { createdAt: then, lastActivityAt: new Date().toISOString() });
    const ask = () => resolveSession({ userId }, mortal, defaultAffinityResolver(mortal));
    const first = await ask();
    const second = await ask();

    expect(first).toMatchObject({ state: 'created' });
    expect(first.id).not.toBe(old.id);
    expect(second).toMatchObject({ id: first.id, state: 'active' });
    expect(await store.get(old.id)).toMatchObject({ state: 'active' });
  });

  async function touched(input: { workspaceId?: string } = {}): Promise<Session> {
    return store.touch((await store.create({ userId, ...input })).id);
  }

  /** Inserts a session of the user that was last active some hours ago. */
  async function insert(
    state: 'active' | 'suspended',
    hoursAgo: number,
    metadata: Session['metadata'] = {},
  ): Promise<Session> {
    const { createdAt } = await store.create({ userId: mintId() });
    const then = new Date(Date.parse(createdAt) - hoursAgo * 3_600_000).toISOString();
    const session: Session = {
      id: mintId(),
      userId,
      state,
      createdAt: then,
      lastActivityAt: then,
      stateChangedAt: then,
      attachedSurfaces: [],
      metadata,
      version: 2,
    };
    await target.adapter.sessions.insert(session);
    return session;
  }
});
