import { jest } from '@jest/globals';
import * as root from 'nestjs-agent-sessions';
import {
  type AffinityResolver,
  type CreateSessionInput,
  createSessionStore,
  defaultAffinityResolver,
  type InboundMessage,
  InMemorySessionStoreAdapter,
  resolveSession,
  type Session,
  SessionConflictError,
  SessionNotFoundError,
  type SessionQuery,
  SessionsConfigurationError,
  SessionsError,
  type SessionState,
  SessionStateError,
  type SessionStore,
  type SessionStoreAdapter,
  type SessionStoreConfig,
} from 'nestjs-agent-sessions';

describe('the root entry without Nest', () => {
  it("SES-17 exports the names of the source's package", () => {
    expect(root).toMatchObject({
      createSessionStore: expect.any(Function) as unknown,
      InMemorySessionStoreAdapter: expect.any(Function) as unknown,
      defaultAffinityResolver: expect.any(Function) as unknown,
      resolveSession: expect.any(Function) as unknown,
      SessionNotFoundError: expect.any(Function) as unknown,
      SessionConflictError: expect.any(Function) as unknown,
      SessionStateError: expect.any(Function) as unknown,
    });
  });

  it("SES-17 accepts and returns the source's types", async () => {
    const adapter: SessionStoreAdapter = new InMemorySessionStoreAdapter();
    const config: SessionStoreConfig = { adapter, defaultTtlMs: 60_000 };
    const store: SessionStore = createSessionStore(config);
    const input: CreateSessionInput = {
      id: 'session-1',
      userId: 'ann',
      workspaceId: 'acme',
      initialSurfaceId: 'web',
      metadata: { plan: 'pro' },
    };
    const session: Session = await store.create(input);
    const state: SessionState = session.state;
    const query: SessionQuery = { userId: 'ann', state: ['created', 'active'], surfaceId: 'web', limit: 5 };
    const resolver: AffinityResolver = defaultAffinityResolver(store);
    const message: InboundMessage = { userId: 'ann', workspaceId: 'acme', surfaceId: 'web' };

    expect(state).toBe('created');
    expect(await store.find(query)).toEqual([session]);
    expect(await resolveSession(message, store, resolver)).toMatchObject({ id: 'session-1', state: 'active' });
    expect(await adapter.fetchById('session-1')).toMatchObject({ state: 'active' });
  });

  it('SES-17 has get for hosts that accept any store, and no getSession', () => {
    const store = createSessionStore({ adapter: new InMemorySessionStoreAdapter() });

    expect(typeof store.get).toBe('function');
    expect('getSession' in store).toBe(false);
  });

  it('SES-17 starts no timer', async () => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask'] });
    try {
      const store = createSessionStore({ adapter: new InMemorySessionStoreAdapter() });
      const { id } = await store.create({ userId: 'ann', initialSurfaceId: 'web' });
      await store.touch(id);
      await store.attachSurface(id, 'slack');
      await store.updateMetadata(id, { a: 1 });
      await store.find();
      await store.sweepStale(0);
      await store.expire(id);

      expect(jest.getTimerCount()).toBe(0);
    } finally {
      jest.useRealTimers();
    }
  });

  it('SES-17 works with detached methods of the store', async () => {
    // oxlint-disable-next-line typescript/unbound-method -- detached methods are under test
    const { create, touch, get } = createSessionStore({ adapter: new InMemorySessionStoreAdapter() });
    const { id } = await create({ userId: 'ann' });

    expect(await touch(id)).toEqual(await get(id));
  });

  it('SES-14 has errors with the fields, messages and codes that callers branch on', () => {
    const errors = [
      new SessionNotFoundError('s-1'),
      new SessionConflictError('s-1'),
      new SessionStateError('s-1', 'expired', 'touch'),
    ];

    expect(errors.map(({ name, code, message }) => ({ name, code, message }))).toEqual([
      { name: 'SessionNotFoundError', code: 'SESSION_NOT_FOUND', message: 'Session not found: s-1' },
      { name: 'SessionConflictError', code: 'SESSION_CONFLICT', message: 'Session already exists: s-1' },
      {
        name: 'SessionStateError',
        code: 'SESSION_STATE',
        message: "Invalid transition 'touch' from state 'expired' for session s-1",
      },
    ]);
    for (const error of errors) {
      expect(error).toBeInstanceOf(SessionsError);
      expect(error).toBeInstanceOf(Error);
      expect(error).toMatchObject({ sessionId: 's-1' });
    }
    expect(errors[2]).toMatchObject({ currentState: 'expired', attemptedTransition: 'touch' });
  });

  const adapter = new InMemorySessionStoreAdapter();
  const method = async () => null;

  it.each<[what: string, config: unknown, message: string | RegExp]>([
    ['nothing', undefined, 'createSessionStore: config must be an object.'],
    ['null', null, 'createSessionStore: config must be an object.'],
    [
      'no adapter',
      {},
      /config\.adapter must have the methods insert.*Missing: insert, fetchById, fetchMany, update, delete/,
    ],
    ['an adapter that is null', { adapter: null }, /config\.adapter must have the methods/],
    [
      'half an adapter',
      { adapter: { insert: method, fetchById: method, fetchMany: method } },
      /Missing: update, delete\.$/,
    ],
    [
      'methods that are none',
      { adapter: { insert: method, fetchById: method, fetchMany: method, update: 1, delete: true } },
      /update, delete/,
    ],
    [
      'a part of the atomic methods',
      { adapter: Object.assign(Object.create(adapter) as object, { touch: undefined, count: 7 }) },
      /must have all methods of AtomicSessionStoreAdapter, because it has some of them\. Missing: touch, count\.$/,
    ],
    ['an unknown setting', { adapter, ttlMs: 5 }, 'createSessionStore: config.ttlMs is not a known key.'],
    ['a negative TTL', { adapter, defaultTtlMs: -1 }, /config\.defaultTtlMs must be a number of milliseconds/],
    ['a negative lifetime', { adapter, maxLifetimeMs: -1 }, /config\.maxLifetimeMs must be a number of milliseconds/],
    [
      'an unknown policy',
      { adapter, surfacePolicy: 'steal' },
      /config\.surfacePolicy must be one of move, reject, share/,
    ],
    ['a TTL that is not a number', { adapter, defaultTtlMs: NaN }, /config\.defaultTtlMs/],
    ['a TTL that is a string', { adapter, defaultTtlMs: '5' }, /config\.defaultTtlMs/],
    ['a TTL that is null', { adapter, defaultTtlMs: null }, /config\.defaultTtlMs/],
    [
      'a surface limit of 0',
      { adapter, maxSurfacesPerSession: 0 },
      /config\.maxSurfacesPerSession must be an integer from 1/,
    ],
    ['a fractional surface limit', { adapter, maxSurfacesPerSession: 1.5 }, /config\.maxSurfacesPerSession/],
    ['a metadata limit that is too small', { adapter, maxMetadataBytes: 1 }, /config\.maxMetadataBytes/],
    ['a generator that is not a function', { adapter, generateId: 'uuid' }, /config\.generateId must be a function/],
  ])('SES-17 refuses a configuration with %s', (_, config, message) => {
    const make = () => createSessionStore(config as SessionStoreConfig);

    expect(make).toThrow(SessionsConfigurationError);
    expect(make).toThrow(message);
  });

  it('SES-17 accepts every setting at the limits of its range', async () => {
    const store = createSessionStore({
      adapter: new InMemorySessionStoreAdapter(),
      defaultTtlMs: 0,
      maxLifetimeMs: 0,
      surfacePolicy: 'reject',
      maxSurfacesPerSession: 1,
      maxMetadataBytes: 2,
      generateId: () => 'mine',
    });
    expect(await store.create({ userId: 'ann', initialSurfaceId: 'web' })).toMatchObject({ id: 'mine' });
  });
});
