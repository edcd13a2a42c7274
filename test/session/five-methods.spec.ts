import { setImmediate } from 'node:timers/promises';
import { ConsoleLogger, Logger, type LoggerService } from '@nestjs/common';
import {
  createSessionStore,
  defaultAffinityResolver,
  resolveSession,
  type Session,
  SessionConflictError,
  SessionNotFoundError,
  type SessionQuery,
  type SessionStore,
} from 'nestjs-agent-sessions';
import { ownsSession } from '../../lib/transport/principal.js';

const HOUR = 3_600_000;

// FIX-42: SES-15 requires only five methods.
describe('SessionStore over an adapter with only the five methods', () => {
  let adapter: PlainRows;
  let store: SessionStore;
  let errors: string[];

  beforeEach(() => {
    errors = [];
    const logger: LoggerService = {
      log: () => {},
      warn: () => {},
      error: (message: string) => errors.push(message),
    };
    Logger.overrideLogger(logger);
    adapter = new PlainRows();
    store = createSessionStore({ adapter });
  });

  afterEach(() => {
    Logger.overrideLogger(new ConsoleLogger());
  });

  it('FIX-42 finds the matching sessions, most recently active first, whatever the order of the rows', async () => {
    for (const [id, hours] of Object.entries({ c: 3, a: 1, d: 4, b: 2 })) adapter.put(id, hours * HOUR);
    adapter.put('other', 0, { userId: 'bob' });
    const idsOf = async (query: SessionQuery) => (await store.find(query)).map(({ id }) => id);

    expect(await idsOf({ userId: 'ann' })).toEqual(['a', 'b', 'c', 'd']);
    expect(await idsOf({ userId: 'ann', limit: 2 })).toEqual(['a', 'b']);
    expect(await idsOf({ userId: 'bob' })).toEqual(['other']);
  });

  it('FIX-90 does not purge a session that was created with the id of an expired one', async () => {
    for (const id of ['first', 'second']) adapter.put(id, HOUR, { state: 'expired', stateChangedAt: hourAgo() });
    const remove = adapter.delete.bind(adapter);
    adapter.delete = async (id) => {
      adapter.delete = remove;
      await remove(id);
      const other = id === 'first' ? 'second' : 'first';
      await store.delete(other);
      await store.create({ id: other, userId: 'bob' });
    };

    expect(await store.purgeExpired(1000)).toHaveLength(1);
    expect([...adapter.rows.values()]).toMatchObject([{ userId: 'bob', state: 'created' }]);
  });

  it('FIX-42 a row whose workspaceId is null belongs to its user without a workspace', async () => {
    adapter.put('s', HOUR, { workspaceId: null } as unknown as Partial<Session>);
    const session = (await store.get('s'))!;

    expect(ownsSession({ userId: 'ann' }, session)).toBe(true);
    expect(ownsSession({ userId: 'ann', workspaceId: 'acme' }, session)).toBe(false);
    expect(ownsSession({ userId: 'bob' }, session)).toBe(false);
  });

  it('FIX-42 pages through all sessions once', async () => {
    for (let n = 0; n < 7; n += 1) adapter.put(`s${(n * 3) % 7}`, ((n * 5) % 7) * HOUR);
    const pages: string[][] = [];
    let cursor: string | undefined;
    do {
      const page = await store.page({ userId: 'ann', limit: 3, ...(cursor === undefined ? {} : { cursor }) });
      pages.push(page.sessions.map(({ id }) => id));
      cursor = page.nextCursor;
    } while (cursor !== undefined && pages.length < 9);
    const expected = [...adapter.rows.values()].sort((a, b) => (a.lastActivityAt < b.lastActivityAt ? 1 : -1));

    expect(pages.map((page) => page.length)).toEqual([3, 3, 1]);
    expect(pages.flat()).toEqual(expected.map(({ id }) => id));
  });

  it('FIX-42 reads rows without a version as version 0', async () => {
    adapter.put('a', HOUR);

    expect(await store.get('a')).toMatchObject({ version: 0 });
    expect(await store.find()).toMatchObject([{ version: 0 }]);
    expect((await store.page()).sessions).toMatchObject([{ version: 0 }]);
    expect(await store.detachSurface('a', 'none')).toMatchObject({ version: 0 });
    expect(await store.touch('a')).toMatchObject({ version: 1 });
  });

  it('FIX-42 keeps concurrent changes of a session through several stores', async () => {
    adapter.put('a', HOUR);
    const stores = [store, createSessionStore({ adapter, maxSurfacesPerSession: 30 })];
    await Promise.all(
      Array.from({ length: 20 }, async (_, n) => {
        await stores[1].attachSurface('a', `surface-${n}`);
        await stores[n % 2].updateMetadata('a', { [`key${n}`]: n });
      }),
    );
    const session = await store.get('a');

    expect(session?.attachedSurfaces).toHaveLength(20);
    expect(Object.keys(session?.metadata ?? {})).toHaveLength(20);
    expect(session?.version).toBe(40);
  });

  it.each(['revoke', 'expire'] as const)(
    'FIX-42 keeps a session expired after %s and concurrent touches',
    async (end) => {
      for (let n = 0; n < 10; n += 1) {
        const { id } = await store.create({ userId: 'ann' });
        await Promise.allSettled([
          store.touch(id),
          store.attachSurface(id, `surface-${n}`),
          store[end](id),
          store.touch(id),
          store.sweepStale(0),
        ]);
        expect(await store.get(id)).toMatchObject({ state: 'expired' });
      }
    },
  );

  it('FIX-47 removes the keys of unset', async () => {
    const { id } = await store.create({ userId: 'ann', metadata: { a: 1, b: 2, kept: null } });
    await store.updateMetadata(id, { c: 3 }, { unset: ['a', 'unknown'] });

    expect((await store.get(id))?.metadata).toEqual({ b: 2, c: 3, kept: null });
  });

  it('FIX-42 does not restore a deleted session', async () => {
    const { id } = await store.create({ userId: 'ann' });
    await Promise.allSettled([store.touch(id), store.delete(id), store.touch(id), store.updateMetadata(id, { a: 1 })]);

    expect(await store.get(id)).toBeNull();
  });

  it('FIX-42 attaches a surface to one session, and resolves concurrent messages to one session', async () => {
    const created = await Promise.all(
      Array.from({ length: 10 }, () => store.create({ userId: 'ann', initialSurfaceId: 'web' })),
    );
    const holders = await store.find({ userId: 'ann', surfaceId: 'web' });
    const resolver = defaultAffinityResolver(store);
    const resolved = await Promise.all(
      Array.from({ length: 20 }, () => resolveSession({ userId: 'bob', surfaceId: 'web' }, store, resolver)),
    );

    expect(created).toHaveLength(10);
    expect(holders).toHaveLength(1);
    expect(new Set(resolved.map(({ id }) => id)).size).toBe(1);
  });

  it('FIX-42 sweeps past rows that cannot be written, with any batch size, and logs them', async () => {
    for (let n = 0; n < 6; n += 1) adapter.put(`s${n}`, (n + 2) * HOUR);
    // The sessions that are swept first.
    adapter.broken.add('s5').add('s4');

    expect((await store.sweepStale(HOUR, { maxSessions: 1 })).map(({ id }) => id)).toEqual(['s3']);
    expect((await store.sweepStale(HOUR)).map(({ id }) => id)).toEqual(['s2', 's1', 's0']);
    expect(await store.sweepStale(HOUR)).toEqual([]);
    expect((await store.sweepExpired(HOUR)).map(({ id }) => id)).toEqual(['s3', 's2', 's1', 's0']);
    expect(errors).toEqual([
      expect.stringContaining('Could not suspend 2 of 6 sessions'),
      expect.stringContaining('Could not suspend 2 of 5 sessions'),
      expect.stringContaining('Could not suspend 2 of 2 sessions'),
    ]);
  });

  it('FIX-42 does not sweep a session that was touched after the sweep read it', async () => {
    adapter.put('a', 2 * HOUR);
    const [swept] = await Promise.all([store.sweepStale(HOUR), store.touch('a')]);

    expect(swept).toEqual([]);
    expect(await store.get('a')).toMatchObject({ state: 'active' });
  });
});

type Row = Omit<Session, 'version'>;

/** Implements only the signatures: asynchronous, in insertion order, without versions, with any limit. */
function hourAgo(): string {
  return new Date(Date.now() - HOUR).toISOString();
}

class PlainRows {
  readonly rows = new Map<string, Row>();
  readonly broken = new Set<string>();

  put(id: string, idleMs: number, fields: Partial<Row> = {}): void {
    const at = new Date(Date.now() - idleMs).toISOString();
    const row: Row = {
      id,
      userId: 'ann',
      state: 'active',
      createdAt: at,
      lastActivityAt: at,
      attachedSurfaces: [],
      metadata: {},
      ...fields,
    };
    this.rows.set(id, row);
  }

  async insert(session: Session): Promise<void> {
    await setImmediate();
    if (this.rows.has(session.id)) throw new SessionConflictError(session.id);
    this.rows.set(session.id, session);
  }

  async fetchById(sessionId: string): Promise<Session | null> {
    await setImmediate();
    return structuredClone(this.rows.get(sessionId) ?? null);
  }

  async fetchMany({ limit = 50 }: SessionQuery): Promise<Session[]> {
    await setImmediate();
    return structuredClone([...this.rows.values()].slice(0, limit));
  }

  async update(sessionId: string, patch: Partial<Session>): Promise<Session> {
    await setImmediate();
    if (this.broken.has(sessionId)) throw new Error('This row is locked.');
    const row = this.rows.get(sessionId);
    if (!row) throw new SessionNotFoundError(sessionId);
    this.rows.set(sessionId, { ...row, ...patch });
    return structuredClone(this.rows.get(sessionId)) as Session;
  }

  async delete(sessionId: string): Promise<void> {
    await setImmediate();
    this.rows.delete(sessionId);
  }
}
