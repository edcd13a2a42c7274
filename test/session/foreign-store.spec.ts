import { ConsoleLogger, Logger, type LoggerService } from '@nestjs/common';
import {
  createSessionStore,
  defaultAffinityResolver,
  InMemorySessionStoreAdapter,
  type Session,
  SessionConflictError,
  SessionNotFoundError,
  type SessionQuery,
  SessionStateError,
  type SessionStore,
  type SessionStoreAdapter,
  SurfaceLimitError,
} from 'nestjs-agent-sessions';
import { mintId } from '../../lib/common/ids.js';
import { failureOf } from './expect-error.js';

const HOUR = 3_600_000;

describe('SessionStore over a foreign adapter', () => {
  let adapter: MapSessionStore;
  let store: SessionStore;
  let warnings: string[];

  beforeEach(() => {
    warnings = recordWarnings();
    adapter = new MapSessionStore();
    store = createSessionStore({ adapter: justTheFive(adapter) });
  });

  afterEach(() => {
    Logger.overrideLogger(new ConsoleLogger());
  });

  it('SES-15 works over an object with only the five methods', async () => {
    const { id, userId } = await store.create({ userId: 'ann', initialSurfaceId: 'web', metadata: { a: 1 } });
    expect(await store.touchWithOutcome(id)).toMatchObject({ previousState: 'created', session: { state: 'active' } });
    await store.attachSurface(id, 'slack');
    await store.attachSurface(id, 'slack');
    await store.detachSurface(id, 'web');
    await store.detachSurface(id, 'web');
    await store.updateMetadata(id, { a: null, b: 2 });
    const session = await store.get(id);

    expect(session).toMatchObject({
      state: 'active',
      attachedSurfaces: ['slack'],
      metadata: { b: 2 },
      version: 5,
    });
    expect(await store.find({ userId })).toEqual([session]);
    expect(await store.page({ userId, limit: 1 })).toEqual({ sessions: [session] });
    expect(await store.count({ surfaceId: 'slack' })).toBe(1);
    const expired = await store.expire(id);
    expect(expired.state).toBe('expired');
    expect(await store.expire(id)).toEqual(expired);
    expect(adapter.rows.get(id)).toEqual(expired);
  });

  it('SES-15 warns once in the log that operations are not atomic', async () => {
    for (let n = 0; n < 5; n += 1) await store.touch((await store.create({ userId: 'ann' })).id);

    expect(warnings).toEqual([expect.stringMatching(/no atomic operations.*can be lost/) as unknown]);
  });

  it('SES-15 does not mistake methods with common names for atomic operations', async () => {
    warnings = recordWarnings();
    const repository = Object.assign(justTheFive(adapter), { create: () => 'a row', count: () => 7, touch: () => {} });
    const { id } = await createSessionStore({ adapter: repository }).create({ userId: 'ann' });

    expect(adapter.rows.get(id)).toMatchObject({ userId: 'ann' });
    expect(warnings).toEqual([expect.stringMatching(/no atomic operations/) as unknown]);
  });

  it('SES-15 does not warn over a built-in adapter', async () => {
    warnings = recordWarnings();
    await createSessionStore({ adapter: new InMemorySessionStoreAdapter() }).create({ userId: 'ann' });

    expect(warnings).toEqual([]);
  });

  it('SES-15 rejects what every store rejects, and writes nothing', async () => {
    const { id } = await store.create({ userId: 'ann', initialSurfaceId: 'web' });
    const small = createSessionStore({
      adapter: justTheFive(adapter),
      maxSurfacesPerSession: 1,
      onSurfaceLimit: 'reject',
    });
    await expect(store.create({ id, userId: 'bob' })).rejects.toBeInstanceOf(SessionConflictError);
    await expect(small.attachSurface(id, 'slack')).rejects.toBeInstanceOf(SurfaceLimitError);
    const expired = await store.expire(id);
    await expect(store.touch(id)).rejects.toBeInstanceOf(SessionStateError);
    await expect(store.attachSurface(id, 'slack')).rejects.toBeInstanceOf(SessionStateError);

    expect(await store.get(id)).toEqual(expired);
    expect(await store.get('unknown')).toBeNull();
    for (const method of ['touch', 'expire'] as const) {
      expect(await failureOf(() => store[method]('unknown'))).toBeInstanceOf(SessionNotFoundError);
    }
  });

  it('SES-15 passes errors of the store on unchanged', async () => {
    const failure = new Error('The disk is full.');
    const { id } = await store.create({ userId: 'ann' });
    adapter.fail = () => failure;

    expect(await failureOf(() => store.get(id))).toBe(failure);
    expect(await failureOf(() => store.touch(id))).toBe(failure);
    expect(await failureOf(() => store.find())).toBe(failure);
  });

  it('SES-04 SES-15 pages over a store without cursors', async () => {
    const ids = (await createMany(7)).map(({ id }) => id);
    const pages: (readonly Session[])[] = [];
    let cursor: string | undefined;
    do {
      const page = await store.page({ userId: 'ann', limit: 3, ...(cursor === undefined ? {} : { cursor }) });
      pages.push(page.sessions);
      cursor = page.nextCursor;
    } while (cursor !== undefined && pages.length < 20);

    expect(pages.map((page) => page.length)).toEqual([3, 3, 1]);
    expect(pages.flat().map(({ id }) => id)).toEqual([...ids].sort());
  });

  it('SES-04 SES-15 finds and counts by activeBefore over a store without it', async () => {
    const [first, second, third] = await createMany(3);
    for (const [index, { id }] of [first, second, third].entries()) adapter.age(id, index * HOUR);
    const activeBefore = adapter.rows.get(second.id)?.lastActivityAt ?? '';

    expect((await store.find({ activeBefore })).map(({ id }) => id)).toEqual([third.id]);
    expect(await store.count({ activeBefore })).toBe(1);
    expect(await store.count()).toBe(3);
  });

  it('SES-15 SES-17 finds a session to continue, however many the user has in other workspaces', async () => {
    await createMany(120, { workspaceId: 'elsewhere' });
    const resolver = defaultAffinityResolver(store);
    expect(await resolver.resolve('ann', 'web')).toBeNull();

    const own = await store.create({ userId: 'ann' });
    expect(await resolver.resolve('ann', 'web')).toEqual(own);
  });

  it('SES-09 SES-15 suspends idle sessions, the longest idle first', async () => {
    const [fresh, two, three, four] = await createMany(4);
    for (const { id } of [fresh, two, three, four]) await store.touch(id);
    adapter.age(two.id, 2 * HOUR);
    adapter.age(three.id, 3 * HOUR);
    adapter.age(four.id, 4 * HOUR);
    const aged = adapter.rows.get(four.id);
    const idsOf = (sessions: readonly Session[]) => sessions.map(({ id }) => id);

    expect(await store.sweepStale(Number.MAX_VALUE)).toEqual([]);
    const [first, ...others] = await store.sweepStale(HOUR, { maxSessions: 1 });
    expect(others).toEqual([]);
    expect(first).toEqual({ ...aged, state: 'suspended', stateChangedAt: first.stateChangedAt, version: 3 });
    expect(idsOf(await store.sweepStale(HOUR))).toEqual([three.id, two.id]);
    expect(await store.sweepStale(HOUR)).toEqual([]);
    expect(await store.get(fresh.id)).toMatchObject({ state: 'active' });
  });

  it('SES-07 SES-15 moves or rejects a surface according to the policy', async () => {
    const first = await store.create({ userId: 'ann', initialSurfaceId: 'web' });
    const elsewhere = await store.create({ userId: 'ann', workspaceId: 'acme', initialSurfaceId: 'web' });
    const second = await store.create({ userId: 'ann', initialSurfaceId: 'web' });
    const strict = createSessionStore({ adapter: justTheFive(adapter), surfacePolicy: 'reject' });

    expect(adapter.rows.get(first.id)).toMatchObject({ attachedSurfaces: [], version: 2 });
    await expect(strict.attachSurface(first.id, 'web')).rejects.toMatchObject({ heldBy: second.id });
    await expect(strict.create({ userId: 'ann', initialSurfaceId: 'web' })).rejects.toMatchObject({
      heldBy: second.id,
    });
    await store.attachSurface(first.id, 'web');
    expect(adapter.rows.get(second.id)).toMatchObject({ attachedSurfaces: [] });
    expect(await store.get(elsewhere.id)).toEqual(elsewhere);
    expect(await store.count()).toBe(3);
  });

  it('SES-15 SES-16 adopts the session that was just created for the surface', async () => {
    const first = await store.createOrAdopt({ userId: 'ann', initialSurfaceId: 'web' });

    expect(await store.createOrAdopt({ userId: 'ann', initialSurfaceId: 'web' })).toEqual(first);
    expect((await store.createOrAdopt({ userId: 'ann' })).id).not.toBe(first.id);
    adapter.age(first.id, HOUR);
    adapter.rows.set(first.id, { ...first, createdAt: adapter.rows.get(first.id)?.lastActivityAt ?? '' });
    expect((await store.createOrAdopt({ userId: 'ann', initialSurfaceId: 'web' })).id).not.toBe(first.id);
  });

  it('SES-10 SES-11 SES-15 expires and deletes over a store without these methods', async () => {
    const [unused, active, ended, unknown] = await createMany(4);
    adapter.age(unused.id, 2 * HOUR);
    await store.touch(active.id);
    adapter.age(active.id, 2 * HOUR);
    await store.expire(ended.id);
    const row = await store.expire(unknown.id);
    const { stateChangedAt: _, ...without } = row;
    adapter.rows.set(ended.id, { ...row, id: ended.id, stateChangedAt: '2001-01-01T00:00:00.000Z' });
    adapter.rows.set(unknown.id, without);

    expect((await store.sweepExpired(HOUR)).map(({ id }) => id)).toEqual([unused.id]);
    expect(await store.get(active.id)).toMatchObject({ state: 'active' });
    // It is unknown when the other one ended.
    expect(await store.purgeExpired(HOUR)).toEqual([ended.id]);
    expect([...adapter.rows.keys()].sort()).toEqual([unused.id, active.id, unknown.id].sort());
  });

  it('SES-15 SES-18 emits a deletion only if the session existed', async () => {
    const heard: string[] = [];
    store.events.on('deleted', ({ sessionId }) => heard.push(sessionId));
    const { id } = await store.create({ userId: 'ann' });
    await store.delete(id);
    await store.delete(id);

    expect(heard).toEqual([id]);
  });

  it('SES-09 suspends the other sessions if one cannot be suspended', async () => {
    const sessions = await createMany(5);
    for (const { id } of sessions) {
      await store.touch(id);
      adapter.age(id, 2 * HOUR);
    }
    const [, broken, deleted] = sessions;
    adapter.fail = (method, id) => {
      if (method !== 'update') return undefined;
      if (id === broken.id) return new Error('This row is locked.');
      return id === deleted.id ? new SessionNotFoundError(id) : undefined;
    };
    const swept = await store.sweepStale(HOUR);

    expect(swept).toHaveLength(3);
    for (const { id } of swept) expect([broken.id, deleted.id]).not.toContain(id);
    expect(await store.get(broken.id)).toMatchObject({ state: 'active' });
  });

  it('FIX-90 changes the session that the caller has read, and no other that got its id', async () => {
    const session = await store.create({ userId: 'ann' });
    const { id } = session;
    await store.delete(id);
    const other = await store.create({ id, userId: 'bob' });

    for (const change of [
      () => store.touch(id, { session }),
      () => store.attachSurface(id, 'web', { session }),
      () => store.revoke(id, { session }),
      () => store.updateMetadata(id, { a: 1 }, { session }),
    ]) {
      expect(await failureOf(change)).toBeInstanceOf(SessionNotFoundError);
    }
    expect(await store.erase(id, { session })).toBe(false);
    expect(adapter.rows.get(id)).toEqual(other);
    expect(await store.touch(id, { session: other })).toMatchObject({ state: 'active' });
    expect(await store.erase(id, { session: other })).toBe(true);
  });

  it('SES-09 fails if the sessions cannot be read', async () => {
    const failure = new Error('The store is away.');
    adapter.fail = (method) => (method === 'fetchMany' ? failure : undefined);

    expect(await failureOf(() => store.sweepStale(HOUR))).toBe(failure);
  });

  /** Creates sessions of ann with ascending ids, all at the same time. */
  async function createMany(count: number, input: { workspaceId?: string } = {}): Promise<Session[]> {
    const prefix = mintId();
    const now = new Date().toISOString();
    const sessions: Session[] = [];
    for (let n = 0; n < count; n += 1) {
      const session = await store.create({ id: `${prefix}-${String(n).padStart(4, '0')}`, userId: 'ann', ...input });
      sessions.push(await adapter.update(session.id, { createdAt: now, lastActivityAt: now }));
    }
    return sessions;
  }
});

/** A store written from the five signatures alone: it supports neither cursors nor `activeBefore`. */
class MapSessionStore implements SessionStoreAdapter {
  readonly rows = new Map<string, Session>();
  fail: (method: string, sessionId?: string) => Error | undefined = () => undefined;

  async insert(session: Session): Promise<void> {
    this.check('insert', session.id);
    if (this.rows.has(session.id)) throw new SessionConflictError(session.id);
    this.rows.set(session.id, structuredClone(session));
  }

  async fetchById(sessionId: string): Promise<Session | null> {
    this.check('fetchById', sessionId);
    return structuredClone(this.rows.get(sessionId) ?? null);
  }

  async fetchMany({
    userId,
    workspaceId,
    state,
    surfaceId,
    activeAfter,
    limit = 50,
  }: SessionQuery): Promise<Session[]> {
    this.check('fetchMany');
    const found = [...this.rows.values()].filter(
      (session) =>
        (userId === undefined || session.userId === userId) &&
        (workspaceId === undefined || session.workspaceId === workspaceId) &&
        (state === undefined || [state].flat().includes(session.state)) &&
        (surfaceId === undefined || session.attachedSurfaces.includes(surfaceId)) &&
        (activeAfter === undefined || session.lastActivityAt > activeAfter),
    );
    const keyOf = ({ lastActivityAt, createdAt }: Session) => `${lastActivityAt} ${createdAt}`;
    found.sort((a, b) => (keyOf(b) < keyOf(a) ? -1 : keyOf(b) > keyOf(a) ? 1 : a.id < b.id ? -1 : 1));
    return structuredClone(found.slice(0, limit));
  }

  async update(sessionId: string, patch: Partial<Session>): Promise<Session> {
    this.check('update', sessionId);
    const before = this.rows.get(sessionId);
    if (!before) throw new SessionNotFoundError(sessionId);
    const after = structuredClone({ ...before, ...patch });
    this.rows.set(sessionId, after);
    return structuredClone(after);
  }

  async delete(sessionId: string): Promise<void> {
    this.check('delete', sessionId);
    this.rows.delete(sessionId);
  }

  /** Moves a session's last activity this far into the past. */
  age(sessionId: string, ms: number): void {
    const session = this.rows.get(sessionId);
    if (!session) throw new Error(`There is no session ${sessionId}.`);
    const lastActivityAt = new Date(Date.parse(session.lastActivityAt) - ms).toISOString();
    this.rows.set(sessionId, { ...session, lastActivityAt });
  }

  private check(method: string, sessionId?: string): void {
    const failure = this.fail(method, sessionId);
    if (failure) throw failure;
  }
}

function justTheFive(adapter: SessionStoreAdapter): SessionStoreAdapter {
  return {
    insert: (session) => adapter.insert(session),
    fetchById: (sessionId) => adapter.fetchById(sessionId),
    fetchMany: (query) => adapter.fetchMany(query),
    update: (sessionId, patch) => adapter.update(sessionId, patch),
    delete: (sessionId) => adapter.delete(sessionId),
  };
}

/** Records the warnings that are logged from now on. */
function recordWarnings(): string[] {
  const warnings: string[] = [];
  const logger: LoggerService = {
    log: () => {},
    error: () => {},
    warn: (message: string) => warnings.push(message),
  };
  Logger.overrideLogger(logger);
  return warnings;
}
