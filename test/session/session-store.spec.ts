import { join } from 'node:path';
import Database from 'better-sqlite3';
import {
  type CreateSessionInput,
  InMemorySessionStoreAdapter,
  InvalidInputError,
  type Session,
  SessionConflictError,
  type SessionEvent,
  SessionNotFoundError,
  SessionStateError,
  SessionStore,
  StateSerializationError,
  StoreUnavailableError,
  SurfaceLimitError,
} from 'nestjs-agent-sessions';
import { type SessionStoreSettings } from '../../lib/session/session-store.service.js';
import { type ConformanceTarget } from '../../lib/testing/index.js';
import { mintId } from '../../lib/common/ids.js';
import { sqliteAdapter, BEHAVIOUR_STORES, temporaryFolder } from '../support/stores.js';
import { expectError, failureOf } from './expect-error.js';

const HOUR = 3_600_000;

describe.each(BEHAVIOUR_STORES)('SessionStore over $name', ({ open }) => {
  let target: ConformanceTarget;
  let store: SessionStore;
  const storeWith = (settings: SessionStoreSettings) => new SessionStore(target.adapter.sessions, settings);
  const create = (input: Partial<CreateSessionInput> = {}) => store.create({ userId: mintId(), ...input });

  beforeAll(async () => {
    target = open();
    await target.adapter.init?.();
    store = storeWith({});
  });

  afterAll(async () => {
    await target.adapter.close?.();
  });

  describe('creates', () => {
    it('SES-02 SES-03 stores and returns the given fields', async () => {
      const input = {
        id: mintId(),
        userId: mintId(),
        workspaceId: 'acme',
        initialSurfaceId: 'web',
        metadata: { plan: { seats: [1, 2] }, note: null, nothing: undefined },
      };
      const session = await store.create(input);

      expect(session).toEqual({
        id: input.id,
        userId: input.userId,
        workspaceId: 'acme',
        state: 'created',
        createdAt: session.createdAt,
        lastActivityAt: session.createdAt,
        attachedSurfaces: ['web'],
        metadata: { plan: { seats: [1, 2] }, note: null },
        version: 1,
      });
      expect(session.metadata).not.toHaveProperty('nothing');
      expect(await store.get(input.id)).toEqual(session);
      expect(await store.get(mintId())).toBeNull();
    });

    it('SES-02 starts without surfaces and metadata by default', async () => {
      expect(await create()).toMatchObject({ state: 'created', attachedSurfaces: [], metadata: {} });
    });

    it('SES-02 generates an id with 128 random bits by default', async () => {
      const ids = await Promise.all(Array.from({ length: 50 }, async () => (await create()).id));

      expect(new Set(ids).size).toBe(50);
      for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32}$/);
    });

    it('SES-02 uses the id of a generator, and validates it', async () => {
      const id = mintId();
      expect((await storeWith({ generateId: () => id }).create({ userId: 'ann' })).id).toBe(id);
      await expect(storeWith({ generateId: () => 'no good' }).create({ userId: 'ann' })).rejects.toBeInstanceOf(
        InvalidInputError,
      );
    });

    it('SES-02 copies the metadata deeply', async () => {
      const metadata = { list: [{ n: 1 }] };
      const session = await create({ metadata });
      metadata.list.push({ n: 2 });
      (session.metadata.list as object[]).push({ n: 3 });

      expect((await store.get(session.id))?.metadata).toEqual({ list: [{ n: 1 }] });
    });

    it('FIX-64 keeps metadata with keys named like properties of every object', async () => {
      const metadata = { constructor: 'Team Nine', prototype: [1], a: { constructor: 2, b: [{ prototype: 3, c: 4 }] } };
      const { id } = await create({ metadata });
      expect((await store.get(id))?.metadata).toEqual(metadata);

      const updated = await store.updateMetadata(id, { constructor: null, prototype: 5 });
      expect(updated.metadata).toEqual({ prototype: 5, a: metadata.a });
      expect(await store.updateMetadata(id, {}, { unset: ['prototype', 'constructor', 'toString'] })).toMatchObject({
        metadata: { a: metadata.a },
      });
    });

    it('FIX-64 rejects the key __proto__ in metadata, and stores nothing', async () => {
      const metadata = JSON.parse('{"a":1,"list":[{"__proto__":{"polluted":1}}]}') as Record<string, unknown>;
      const { id } = await create();

      for (const call of [() => create({ metadata }), () => store.updateMetadata(id, metadata)]) {
        const error = await failureOf(call);
        expectError(
          error,
          StateSerializationError,
          'STATE_NOT_SERIALIZABLE',
          'metadata.list[0].__proto__ is a reserved key, which cannot be stored as JSON. Rename or remove the key.',
        );
      }
      expect((await store.get(id))?.metadata).toEqual({});
    });

    it('SES-02 SES-14 rejects a taken id and does not change the stored session', async () => {
      const before = await create({ metadata: { mine: true } });
      const error = await failureOf(() => store.create({ id: before.id, userId: 'bob', metadata: { theirs: true } }));

      expectError(error, SessionConflictError, 'SESSION_CONFLICT', `Session already exists: ${before.id}`);
      expect(error).toMatchObject({ sessionId: before.id });
      expect(await store.get(before.id)).toEqual(before);
    });
  });

  describe('surfaces and lifecycle', () => {
    it('SES-05 distinguishes a cold start from a running and a resumed session', async () => {
      const { id } = await create();
      const states = [
        (await store.touchWithOutcome(id)).previousState,
        (await store.touchWithOutcome(id)).previousState,
      ];
      await target.adapter.sessions.update(id, { state: 'suspended' });
      const resumed = await store.touchWithOutcome(id);

      expect([...states, resumed.previousState]).toEqual(['created', 'active', 'suspended']);
      expect(resumed.session).toEqual(await store.get(id));
    });

    it('SES-05 SES-14 rejects a touch of an expired session', async () => {
      const { id } = await create();
      const expired = await store.expire(id);

      for (const method of ['touch', 'touchWithOutcome'] as const) {
        const error = await failureOf(() => store[method](id));
        expectError(
          error,
          SessionStateError,
          'SESSION_STATE',
          `Invalid transition 'touch' from state 'expired' for session ${id}`,
        );
        expect(error).toMatchObject({ sessionId: id, currentState: 'expired', attemptedTransition: 'touch' });
      }
      expect(await store.get(id)).toEqual(expired);
    });

    it('SES-06 SES-14 rejects an attach to an expired session, but detaches', async () => {
      const { id } = await create({ initialSurfaceId: 'web' });
      await store.expire(id);
      const error = await failureOf(() => store.attachSurface(id, 'slack'));

      expectError(
        error,
        SessionStateError,
        'SESSION_STATE',
        `Invalid transition 'attachSurface' from state 'expired' for session ${id}`,
      );
      expect(await store.detachSurface(id, 'web')).toMatchObject({ state: 'expired', attachedSurfaces: [] });
    });

    it('SES-06 attaches 16 surfaces by default, or as many as configured', async () => {
      const { id } = await create();
      for (let n = 0; n < 16; n += 1) await store.attachSurface(id, `surface-${n}`);
      const error = await failureOf(() => storeWith({ onSurfaceLimit: 'reject' }).attachSurface(id, 'one-more'));

      expectError(error, SurfaceLimitError, 'SURFACE_LIMIT');
      expect(error).toMatchObject({ sessionId: id, limit: 16 });
      expect((await store.attachSurface(id, 'surface-0')).attachedSurfaces).toHaveLength(16);
      expect((await storeWith({ maxSurfacesPerSession: 17 }).attachSurface(id, 'one-more')).version).toBe(18);
    });

    it('FIX-45 detaches the surface that was attached first by default, with its event', async () => {
      const { id } = await create();
      for (let n = 0; n < 16; n += 1) await store.attachSurface(id, `surface-${n}`);
      const heard: unknown[] = [];
      store.events.on('surface-detached', (event) => heard.push(event));
      const session = await store.attachSurface(id, 'one-more');

      expect(session.attachedSurfaces).toHaveLength(16);
      expect(session.attachedSurfaces).toEqual(expect.arrayContaining(['surface-1', 'one-more']));
      expect(heard).toEqual([{ type: 'surface-detached', session, surfaceId: 'surface-0', cause: 'limit' }]);
    });

    it('SES-08 expires once', async () => {
      const { id } = await create();
      const expired = await store.expire(id);
      expect(expired.state).toBe('expired');
      expect(await store.expire(id)).toEqual(expired);
    });

    it('SES-12 merges a patch, and removes keys that are null', async () => {
      const { id } = await create({ metadata: { a: 1, b: { c: 1 }, kept: null } });
      const updated = await store.updateMetadata(id, { a: null, b: { d: 2 }, e: 'new', left: undefined });

      expect(updated.metadata).toEqual({ b: { d: 2 }, e: 'new', kept: null });
      expect(await store.get(id)).toEqual(updated);
    });

    it('FIX-47 removes the keys of `unset` together with the patch', async () => {
      const { id } = await create({ metadata: { a: 1, b: 2, kept: null, '': 0 } });
      const updated = await store.updateMetadata(id, { b: null, c: 3 }, { unset: ['a', '', 'unknown'] });

      expect(updated).toMatchObject({ metadata: { c: 3, kept: null }, version: 2 });
      expect(await store.get(id)).toEqual(updated);
      expect(await store.updateMetadata(id, {}, { unset: ['kept'] })).toMatchObject({ metadata: { c: 3 }, version: 3 });
      expect(await store.updateMetadata(id, {}, { unset: ['kept', '__proto__'] })).toMatchObject({ version: 3 });
    });

    it('FIX-90 changes the session that the caller has read, and no other that got its id', async () => {
      const session = await create();
      const { id, createdAt, userId } = session;
      const update = (read: Pick<Session, 'createdAt' | 'userId'>) =>
        store.updateMetadata(id, { a: 1 }, { session: read });
      expect(await update(session)).toMatchObject({ metadata: { a: 1 } });
      await store.delete(id);
      const other = await create({ id });

      expect(await failureOf(() => update({ createdAt, userId }))).toBeInstanceOf(SessionNotFoundError);
      expect(await store.get(id)).toEqual(other);
    });

    it.each<[string, (read: Session) => Promise<unknown>]>([
      ['touch', (session) => store.touch(session.id, { session })],
      ['touchWithOutcome', (session) => store.touchWithOutcome(session.id, { session })],
      ['attachSurface', (session) => store.attachSurface(session.id, 'late', { session })],
      ['revoke', (session) => store.revoke(session.id, { session })],
    ])('FIX-90 %s changes the session that the caller has read, and no other that got its id', async (_, change) => {
      const { session, other } = await replaced();
      const events: SessionEvent[] = [];
      const listening = store.events.stream.subscribe((event) => events.push(event));

      expect(await failureOf(() => change(session))).toBeInstanceOf(SessionNotFoundError);
      expect(await store.get(other.id)).toEqual(other);
      listening.unsubscribe();
      expect(events).toEqual([]);
      await change(other);
      expect(await store.get(other.id)).toMatchObject({ version: 2 });
    });

    it('FIX-90 erase keeps a session that got the id of the one that the caller has read', async () => {
      const { session, other } = await replaced();

      expect(await store.erase(other.id, { session })).toBe(false);
      expect(await store.get(other.id)).toEqual(other);
      expect(await store.erase(other.id, { session: other })).toBe(true);
      expect(await store.get(other.id)).toBeNull();
    });

    it.each(['touch', 'revoke', 'erase'] as const)('FIX-90 %s rejects a session without its owner', async (method) => {
      const session = await create();
      const options = { session: { createdAt: session.createdAt } };

      expect(await failureOf(() => store[method](session.id, options as never))).toBeInstanceOf(InvalidInputError);
      expect(await store.get(session.id)).toEqual(session);
    });

    async function replaced(): Promise<{ session: Session; other: Session }> {
      const session = await create();
      await store.delete(session.id);
      return { session, other: await create({ id: session.id }) };
    }

    it.each<[string, unknown]>([
      ['an unknown key', { unset: [], ttlMs: 1 }],
      ['a session without its owner', { session: { createdAt: new Date(0).toISOString() } }],
      ['keys that are not a list', { unset: 'a' }],
      ['null', { unset: null }],
      ['a key that is not a string', { unset: [1] }],
      ['a key that the patch sets', { unset: ['a', 'b'] }],
      ['options that are not an object', ['a']],
    ])('FIX-47 rejects %s, and removes nothing', async (_, options) => {
      const before = await create({ metadata: { a: 1, b: 2 } });

      expect(await failureOf(() => store.updateMetadata(before.id, { b: 3 }, options as never))).toBeInstanceOf(
        InvalidInputError,
      );
      expect(await store.get(before.id)).toEqual(before);
    });

    it('SES-13 SES-14 names the unknown id', async () => {
      const id = mintId();
      const calls: (() => Promise<unknown>)[] = [
        () => store.touch(id),
        () => store.touchWithOutcome(id),
        () => store.attachSurface(id, 'web'),
        () => store.detachSurface(id, 'web'),
        () => store.expire(id),
        () => store.updateMetadata(id, { a: 1 }),
      ];
      for (const call of calls) {
        const error = await failureOf(call);
        expectError(error, SessionNotFoundError, 'SESSION_NOT_FOUND', `Session not found: ${id}`);
        expect(error).toMatchObject({ sessionId: id });
      }
    });
  });

  describe('sweeps', () => {
    const idle = async (count: number, ms: number): Promise<string[]> => {
      const then = new Date(Date.parse((await create()).createdAt) - ms).toISOString();
      const ids = Array.from({ length: count }, mintId);
      const insert = (id: string) =>
        target.adapter.sessions.insert({
          id,
          userId: 'ann',
          state: 'active',
          createdAt: then,
          lastActivityAt: then,
          attachedSurfaces: [],
          metadata: {},
          version: 1,
        });
      await Promise.all(ids.map(insert));
      return ids;
    };

    beforeEach(() => store.sweepStale(0));

    it('SES-09 suspends sessions that were idle longer than the default TTL of an hour', async () => {
      const [stale] = await idle(1, HOUR + 60_000);
      const [fresh] = await idle(1, HOUR - 60_000);

      expect(idsOf(await store.sweepStale())).toEqual([stale]);
      expect(await store.get(stale)).toMatchObject({ state: 'suspended', version: 2 });
      expect(await store.get(fresh)).toMatchObject({ state: 'active', version: 1 });
      expect(await store.sweepStale()).toEqual([]);
    });

    it('SES-09 prefers the TTL of the call to the TTL of the store', async () => {
      const [stale] = await idle(1, HOUR / 2);

      expect(await store.sweepStale(HOUR)).toEqual([]);
      expect(idsOf(await storeWith({ defaultTtlMs: HOUR / 4 }).sweepStale())).toEqual([stale]);
    });

    it('SES-09 continues over batches until no stale session is left', async () => {
      const ids = await idle(1203, 2 * HOUR);
      expect(idsOf(await store.sweepStale(HOUR)).sort()).toEqual(ids.sort());
    });

    it('SES-09 stops at maxSessions, and continues in the next run', async () => {
      const ids = await idle(1010, 2 * HOUR);
      const runs = [
        await store.sweepStale(HOUR, { maxSessions: 0 }),
        await store.sweepStale(HOUR, { maxSessions: 7 }),
        await store.sweepStale(HOUR, { maxSessions: 501 }),
        await store.sweepStale(HOUR, { maxSessions: 10_000 }),
      ];

      expect(runs.map((run) => run.length)).toEqual([0, 7, 501, 502]);
      expect(idsOf(runs.flat()).sort()).toEqual(ids.sort());
    });

    it('SES-09 suspends no session for a TTL that exceeds the range of dates', async () => {
      await idle(1, 2 * HOUR);
      expect(await store.sweepStale(Number.MAX_VALUE)).toEqual([]);
    });
  });

  it('SES-17 works with detached methods of subclasses', async () => {
    class OwnStore extends SessionStore {
      override async get(id: string) {
        return id === 'none' ? null : super.get(id);
      }

      mine(): Promise<number> {
        return this.count({ userId: 'nobody' });
      }
    }
    // oxlint-disable-next-line typescript/unbound-method -- taken off is what is tested
    const { create, get, mine } = new OwnStore(target.adapter.sessions);
    const { id } = await create({ userId: mintId() });

    expect(await get(id)).toMatchObject({ id });
    expect(await get('none')).toBeNull();
    expect(await mine()).toBe(0);
  });

  it('SES-17 works with detached methods', async () => {
    /* oxlint-disable typescript/unbound-method -- taken off is what is tested */
    const { create, get, find, page, count, touch, touchWithOutcome, attachSurface, detachSurface } = store;
    const { expire, sweepStale, updateMetadata } = store;
    /* oxlint-enable typescript/unbound-method */
    const { id, userId } = await create({ userId: mintId() });

    expect(await get(id)).toMatchObject({ id });
    expect(await find({ userId })).toHaveLength(1);
    expect((await page({ userId })).sessions).toHaveLength(1);
    expect(await count({ userId })).toBe(1);
    expect(await touch(id)).toMatchObject({ state: 'active' });
    expect(await touchWithOutcome(id)).toMatchObject({ previousState: 'active' });
    expect(await attachSurface(id, 'web')).toMatchObject({ attachedSurfaces: ['web'] });
    expect(await detachSurface(id, 'web')).toMatchObject({ attachedSurfaces: [] });
    expect(await updateMetadata(id, { a: 1 })).toMatchObject({ metadata: { a: 1 } });
    expect(idsOf(await sweepStale(HOUR))).not.toContain(id);
    expect(await expire(id)).toMatchObject({ state: 'expired' });
  });
});

describe('SessionStore with an injected clock', () => {
  it('SES-05 never moves activity back, and SES-17 reads the clock at call time', async () => {
    let now = Date.parse('2026-01-01T00:00:10.000Z');
    const store = new SessionStore(new InMemorySessionStoreAdapter({ clock: () => now }));
    const { id } = await store.create({ userId: 'ann' });
    const first = await store.touch(id);
    now -= 5000;
    const second = await store.touch(id);
    now += 6000;
    const third = await store.touch(id);

    expect(first.lastActivityAt).toBe('2026-01-01T00:00:10.000Z');
    expect(second).toEqual(first);
    expect(third).toMatchObject({ lastActivityAt: '2026-01-01T00:00:11.000Z', version: 3 });
  });

  it('SES-09 suspends sessions that were idle strictly longer, to the millisecond', async () => {
    let now = Date.parse('2026-01-01T00:00:00.000Z');
    const store = new SessionStore(new InMemorySessionStoreAdapter({ clock: () => now }));
    const { id } = await store.create({ userId: 'ann' });
    const active = await store.touch(id);
    now += HOUR;
    expect(await store.sweepStale()).toEqual([]);
    now += 1;

    expect(await store.sweepStale()).toEqual([
      { ...active, state: 'suspended', stateChangedAt: '2026-01-01T01:00:00.001Z', version: 3 },
    ]);
  });
});

describe('SessionStore over two connections to one SQLite file', () => {
  it('SES-06 SES-12 keeps every change that both make to one session', async () => {
    const file = join(temporaryFolder(), 'sessions.db');
    const adapters = [sqliteAdapter(file), sqliteAdapter(file)];
    for (const adapter of adapters) await adapter.init?.();
    const stores = adapters.map((adapter) => new SessionStore(adapter.sessions, { maxSurfacesPerSession: 20 }));
    const { id } = await stores[0].create({ userId: 'ann' });
    await Promise.all(
      Array.from({ length: 20 }, (_, n) => n).flatMap((n) => [
        stores[n % 2].attachSurface(id, `surface-${n}`),
        stores[(n + 1) % 2].updateMetadata(id, { [`key-${n}`]: n }),
      ]),
    );
    const session = await stores[1].get(id);

    expect(session?.attachedSurfaces).toHaveLength(20);
    expect(Object.keys(session?.metadata ?? {})).toHaveLength(20);
    expect(session?.version).toBe(41);
    for (const adapter of adapters) await adapter.close?.();
  });
});

describe('SessionStore over a SQLite file that fails', () => {
  it('SES-03 SES-13 takes no failure of the store for a session that is not there', async () => {
    const file = join(temporaryFolder(), 'sessions.db');
    const adapter = sqliteAdapter(file);
    await adapter.init?.();
    const store = new SessionStore(adapter.sessions);
    const { id } = await store.create({ userId: 'ann' });
    const other = new Database(file);
    const { name } = other.prepare("SELECT name FROM sqlite_master WHERE name LIKE '%session'").get() as {
      name: string;
    };
    other.exec(`ALTER TABLE "${name}" RENAME TO "away"`);

    for (const call of [() => store.get(id), () => store.find(), () => store.touch(id), () => store.expire(id)]) {
      expectError(await failureOf(call), StoreUnavailableError, 'STORE_UNAVAILABLE');
    }
    other.exec(`ALTER TABLE "away" RENAME TO "${name}"`);
    other.close();
    expect(await store.get(id)).toMatchObject({ id, state: 'created' });

    await adapter.close?.();
    expectError(await failureOf(() => store.get(id)), StoreUnavailableError, 'STORE_UNAVAILABLE');
    expectError(await failureOf(() => store.touch(id)), StoreUnavailableError, 'STORE_UNAVAILABLE');
  });
});

function idsOf(sessions: readonly Session[]): string[] {
  return sessions.map(({ id }) => id);
}
