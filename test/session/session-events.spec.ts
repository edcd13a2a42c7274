import { ConsoleLogger, Logger, type LoggerService } from '@nestjs/common';
import { InMemorySessionStoreAdapter, type Session, type SessionEvent, SessionStore } from 'nestjs-agent-sessions';
import { type SessionStoreSettings } from '../../lib/session/session-store.service.js';
import { type ConformanceTarget } from '../../lib/testing/index.js';
import { mintId } from '../../lib/common/ids.js';
import { BEHAVIOUR_STORES } from '../support/stores.js';
import { eventually } from '../support/eventually.js';
import { inProduction } from '../support/production.js';

inProduction();

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

describe.each(BEHAVIOUR_STORES)('session events over $name', ({ open }) => {
  let target: ConformanceTarget;
  let store: SessionStore;
  let userId: string;
  let events: SessionEvent[];
  const listen = (settings: SessionStoreSettings = {}): void => {
    store = new SessionStore(target.adapter.sessions, settings);
    events = [];
    store.events.stream.subscribe((event) => events.push(event));
  };
  /** Returns the events since the last call. */
  const heard = (): SessionEvent[] => events.splice(0);

  beforeAll(async () => {
    target = open();
    await target.adapter.init?.();
  });

  afterAll(async () => {
    await target.adapter.close?.();
  });

  beforeEach(() => {
    userId = mintId();
    listen();
  });

  it('SES-18 emits the changes of a session in order, with the previous state and the cause', async () => {
    const created = await store.create({ userId });
    expect(heard()).toEqual([{ type: 'created', session: created }]);
    const active = await store.touch(created.id);
    expect(heard()).toEqual([{ type: 'activated', session: active, previousState: 'created' }]);
    const attached = await store.attachSurface(created.id, 'web');
    expect(heard()).toEqual([{ type: 'surface-attached', session: attached, surfaceId: 'web' }]);
    const detached = await store.detachSurface(created.id, 'web');
    expect(heard()).toEqual([{ type: 'surface-detached', session: detached, surfaceId: 'web', cause: 'requested' }]);
    await target.adapter.sessions.update(created.id, { state: 'suspended' });
    const resumed = await store.touch(created.id);
    expect(heard()).toEqual([{ type: 'resumed', session: resumed, previousState: 'suspended' }]);
    const expired = await store.expire(created.id);
    expect(heard()).toEqual([{ type: 'expired', session: expired, previousState: 'active', cause: 'requested' }]);
    await store.delete(created.id);
    expect(heard()).toEqual([{ type: 'deleted', sessionId: created.id, cause: 'requested' }]);
  });

  it('SES-18 emits nothing for calls that change nothing or are rejected', async () => {
    const { id } = await store.create({ userId, initialSurfaceId: 'web' });
    await store.touch(id);
    heard();

    await store.touch(id);
    await store.attachSurface(id, 'web');
    await store.detachSurface(id, 'phone');
    await store.createOrAdopt({ userId, initialSurfaceId: 'web' });
    await store.sweepStale(DAY);
    await store.delete(mintId());
    await Promise.allSettled([store.create({ id, userId }), store.touch(mintId()), store.expire(mintId())]);
    expect(heard()).toEqual([]);

    await store.expire(id);
    heard();
    await store.expire(id);
    await Promise.allSettled([store.touch(id), store.attachSurface(id, 'phone')]);
    expect(heard()).toEqual([]);
  });

  it('SES-18 SES-07 emits which session lost its surface to which', async () => {
    const first = await store.create({ userId, initialSurfaceId: 'web' });
    heard();
    const second = await store.create({ userId, initialSurfaceId: 'web' });
    expect(heard()).toEqual([
      moved({ ...first, attachedSurfaces: [], version: 2 }),
      { type: 'created', session: second },
    ]);

    const again = await store.attachSurface(first.id, 'web');
    expect(heard()).toEqual([
      moved({ ...second, attachedSurfaces: [], version: 2 }),
      { type: 'surface-attached', session: again, surfaceId: 'web' },
    ]);
  });

  it('SES-18 emits one event when concurrent calls create, delete or expire a session', async () => {
    const many = (act: () => Promise<unknown>) => Promise.all(Array.from({ length: 20 }, act));
    await many(() => store.createOrAdopt({ userId, initialSurfaceId: 'web' }));
    const [{ id }] = await store.find({ userId });
    await many(() => store.touch(id));
    await many(() => store.expire(id));
    await many(() => store.delete(id));

    expect(heard().map(({ type }) => type)).toEqual(['created', 'activated', 'expired', 'deleted']);
  });

  it('SES-18 emits what sweeps suspended, expired and deleted, with the cause', async () => {
    listen({ maxLifetimeMs: 10 * DAY });
    await store.sweepStale(HOUR);
    await store.sweepExpired(HOUR);
    await store.purgeExpired(HOUR);
    heard();
    const stale = await insert('active', { idle: 2 * HOUR });
    const [suspended] = await store.sweepStale(HOUR);
    expect(suspended.id).toBe(stale.id);
    expect(heard()).toEqual([{ type: 'suspended', session: suspended, previousState: 'active', cause: 'idle' }]);

    const unused = await insert('created', { idle: 2 * HOUR });
    const old = await insert('active', { idle: 0, age: 11 * DAY });
    const oldAsleep = await insert('suspended', { idle: HOUR / 2, age: 11 * DAY });
    await store.sweepExpired(HOUR);
    const causes = heard().flatMap((event) =>
      event.type === 'expired' ? [[event.session.id, event.previousState, event.cause]] : [event.type],
    );
    expect(causes.sort()).toEqual(
      [
        [stale.id, 'suspended', 'idle'],
        [unused.id, 'created', 'idle'],
        [old.id, 'active', 'lifetime'],
        [oldAsleep.id, 'suspended', 'lifetime'],
      ].sort(),
    );

    const ended = await insert('expired', { idle: 2 * DAY });
    expect(await store.purgeExpired(DAY)).toEqual([ended.id]);
    expect(heard()).toEqual([{ type: 'deleted', sessionId: ended.id, cause: 'retention' }]);
  });

  it('SES-18 emits the events of every stored batch if a later one fails', async () => {
    await store.sweepStale(HOUR);
    heard();
    await Promise.all(Array.from({ length: 501 }, () => insert('active', { idle: 2 * HOUR })));
    let batches = 0;
    const failing = new Proxy(target.adapter.sessions, {
      get(adapter, name) {
        const method: unknown = Reflect.get(adapter, name);
        if (typeof method !== 'function') return method;
        return (...args: unknown[]): unknown => {
          if (name === 'suspendStale' && ++batches === 2) throw new Error('The store is away.');
          return Reflect.apply(method, adapter, args) as unknown;
        };
      },
    });
    const away = new SessionStore(failing);
    let told = 0;
    away.events.on('suspended', () => (told += 1));

    await expect(away.sweepStale(HOUR)).rejects.toThrow('The store is away.');
    expect(told).toBe(500);
    expect(await store.sweepStale(HOUR)).toHaveLength(1);
  });

  it('SES-18 calls the listeners of a type until they are removed', async () => {
    const types: SessionEvent['type'][] = [];
    const end = store.events.on('activated', ({ type, previousState }) => {
      expect(previousState).toBe('created');
      types.push(type);
    });
    await store.touch((await store.create({ userId })).id);
    end();
    await store.touch((await store.create({ userId })).id);

    expect(types).toEqual(['activated']);
  });

  /** Inserts a session that has been idle for this long. */
  async function insert(state: Session['state'], { idle, age = idle }: { idle: number; age?: number }) {
    const now = Date.parse((await new SessionStore(target.adapter.sessions).create({ userId: mintId() })).createdAt);
    const at = (ms: number) => new Date(now - ms).toISOString();
    const session: Session = {
      id: mintId(),
      userId,
      state,
      createdAt: at(age),
      lastActivityAt: at(idle),
      stateChangedAt: at(idle),
      attachedSurfaces: [],
      metadata: {},
      version: 2,
    };
    await target.adapter.sessions.insert(session);
    return session;
  }
});

describe('a failing listener of session events', () => {
  afterEach(() => {
    Logger.overrideLogger(new ConsoleLogger());
  });

  it('SES-18 affects neither the operation nor other listeners, and is logged', async () => {
    const errors = recordErrors();
    const store = new SessionStore(new InMemorySessionStoreAdapter());
    const heard: string[] = [];
    store.events.on('created', () => {
      throw new Error('at once');
    });
    store.events.on('created', async () => {
      await Promise.resolve();
      throw new Error('later');
    });
    store.events.on('created', ({ session }) => heard.push(session.id));
    const { id } = await store.create({ userId: 'ann' });
    const { id: next } = await store.create({ userId: 'ann' });

    expect(await store.get(id)).toMatchObject({ id });
    expect(heard).toEqual([id, next]);
    await eventually(() => errors.length === 4);
    for (const line of errors)
      expect(line).toMatch(/^A listener of created events threw\. Error\n +at .*session-events/);
  });
});

function moved(session: Session): SessionEvent {
  return { type: 'surface-detached', session, surfaceId: 'web', cause: 'moved' };
}

function recordErrors(): string[] {
  const errors: string[] = [];
  const ignore = (): void => undefined;
  const logger: LoggerService = {
    log: ignore,
    warn: ignore,
    error: (...parts: unknown[]) => errors.push(parts.join(' ')),
  };
  Logger.overrideLogger(logger);
  return errors;
}
