import {
  type CreateSessionInput,
  InvalidInputError,
  SessionStore,
  StateSerializationError,
  TooLargeError,
} from 'nestjs-agent-sessions';
import { type SessionStoreSettings } from '../../lib/session/session-store.service.js';
import { type ConformanceTarget } from '../../lib/testing/index.js';
import { mintId } from '../../lib/common/ids.js';
import { BEHAVIOUR_STORES } from '../support/stores.js';
import { badIds, badMetadata, badNames } from './bad-inputs.js';
import { expectError, failureOf } from './expect-error.js';

const HOUR = 3_600_000;

describe.each(BEHAVIOUR_STORES)('SessionStore input over $name', ({ open }) => {
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

  const created = (input: unknown) => store.create(input as CreateSessionInput);
  const user = { userId: 'ann' };

  it.each<[what: string, input: unknown, path: string]>([
    ['nothing', undefined, 'session'],
    ['null', null, 'session'],
    ['a string', 'ann', 'session'],
    ['an array', [], 'session'],
    ['a Date', new Date(), 'session'],
    ['no user', {}, 'session.userId'],
    ['an unknown key', { ...user, userid: 'ann' }, 'session.userid'],
    ['a key of the record', { ...user, state: 'active' }, 'session.state'],
    ['a key named __proto__', JSON.parse('{"userId":"ann","__proto__":{"admin":true}}'), 'session.__proto__'],
    ['a key named constructor', { ...user, constructor: 1 }, 'session.constructor'],
    ['a key named toString', { ...user, toString: 1 }, 'session.toString'],
    ...badNames.map((name): [string, unknown, string] => [`user ${show(name)}`, { userId: name }, 'session.userId']),
    ...badNames.map((name): [string, unknown, string] => [
      `workspace ${show(name)}`,
      { ...user, workspaceId: name },
      'session.workspaceId',
    ]),
    ...badNames.map((name): [string, unknown, string] => [
      `surface ${show(name)}`,
      { ...user, initialSurfaceId: name },
      'session.initialSurfaceId',
    ]),
    ...badIds.map((id): [string, unknown, string] => [`id ${show(id)}`, { ...user, id }, 'session.id']),
  ])('SES-02 SES-14 refuses to create from %s', async (_, input, path) => {
    const before = await store.count();
    const error = await failureOf(() => created(input));

    expectError(error, InvalidInputError, 'INVALID_INPUT');
    expect(error).toMatchObject({ path });
    expect(await store.count()).toBe(before);
  });

  it.each<[what: string, input: unknown, message: RegExp]>([
    [
      'no user',
      { userId: undefined },
      /^session\.userId must be a string of 1 to 256 characters .*\. Received: undefined\.$/,
    ],
    ['a number', { userId: 42 }, /^session\.userId must be a string of 1 to 256 characters [^.]*\.$/],
    ['an unknown key', { ...user, surface: undefined }, /^session\.surface is not a known key\. Allowed: [^.]*\.$/],
  ])('SES-02 SES-14 says in the words of the caller what is wrong with %s', async (_, input, message) => {
    expect(await failureOf(() => created(input))).toMatchObject({ message: expect.stringMatching(message) as string });
  });

  it('FIX-48 accepts class instances wherever it accepts plain objects', async () => {
    class Dto {
      constructor(values: object) {
        Object.assign(this, values);
      }
    }
    const dto = <T extends object>(values: T): T => new Dto(values) as T;
    const session = await store.create(dto({ ...user, metadata: dto({ plan: 'pro' }) }));

    expect(session.metadata).toEqual({ plan: 'pro' });
    expect((await store.updateMetadata(session.id, dto({ locale: 'de' }))).metadata).toEqual({
      plan: 'pro',
      locale: 'de',
    });
    expect(await store.find(dto({ userId: user.userId, limit: 1 }))).toHaveLength(1);
  });

  it.each(badMetadata)('SES-12 SES-14 rejects metadata that is or contains %s', async (_, metadata, path) => {
    const before = await create({ metadata: { a: 1 } });
    const sessions = await store.count();
    const errors = [
      await failureOf(() => created({ ...user, metadata })),
      await failureOf(() => store.updateMetadata(before.id, metadata as Record<string, unknown>)),
    ];

    for (const error of errors) {
      expectError(error, StateSerializationError, 'STATE_NOT_SERIALIZABLE');
      expect(error).toMatchObject({ path });
    }
    expect(await store.get(before.id)).toEqual(before);
    expect(await store.count()).toBe(sessions);
  });

  it('SES-12 rejects an update without metadata', async () => {
    const before = await create();
    const error = await failureOf(() => store.updateMetadata(before.id, undefined as never));

    expectError(error, StateSerializationError, 'STATE_NOT_SERIALIZABLE');
    expect(await store.get(before.id)).toEqual(before);
  });

  it('SES-12 rejects metadata over its limit in UTF-8 bytes, on create and after an update', async () => {
    const small = storeWith({ maxMetadataBytes: 30 });
    const id = mintId();
    // 11 bytes surround each string, and an emoji has 4 bytes.
    const onCreate = await failureOf(() => small.create({ id, ...user, metadata: { text: '👩👩👩👩👩' } }));
    expectError(onCreate, TooLargeError, 'TOO_LARGE');
    expect(onCreate).toMatchObject({ bytes: 31, maxBytes: 30 });
    expect(await small.get(id)).toBeNull();

    const before = await small.create({ id, ...user, metadata: { text: '0123456789' } });
    const onUpdate = await failureOf(() => small.updateMetadata(id, { more: '0123456789' }));
    expectError(onUpdate, TooLargeError, 'TOO_LARGE');
    expect(await small.get(id)).toEqual(before);
    expect((await small.updateMetadata(id, { text: null, more: '0123456789' })).metadata).toEqual({
      more: '0123456789',
    });
  });

  it('SES-12 accepts 65,536 bytes of metadata by default', async () => {
    const text = 'x'.repeat(65_536 - '{"text":""}'.length);
    await expect(create({ metadata: { text } })).resolves.toMatchObject({ version: 1 });
    await expect(create({ metadata: { text: `${text}x` } })).rejects.toBeInstanceOf(TooLargeError);
  });

  it.each(badIds)('SES-13 rejects %p as an id everywhere', async (bad) => {
    const id = bad as string;
    const calls: (() => Promise<unknown>)[] = [
      () => store.get(id),
      () => store.touch(id),
      () => store.touchWithOutcome(id),
      () => store.attachSurface(id, 'web'),
      () => store.detachSurface(id, 'web'),
      () => store.expire(id),
      () => store.updateMetadata(id, {}),
    ];
    for (const call of calls) {
      const error = await failureOf(call);
      expectError(error, InvalidInputError, 'INVALID_INPUT');
      expect(error).toMatchObject({ path: 'sessionId' });
    }
  });

  it.each(badNames)('SES-06 rejects %p as a surface', async (bad) => {
    const before = await create({ initialSurfaceId: 'web' });
    for (const method of ['attachSurface', 'detachSurface'] as const) {
      const error = await failureOf(() => store[method](before.id, bad as string));
      expectError(error, InvalidInputError, 'INVALID_INPUT');
      expect(error).toMatchObject({ path: 'surfaceId' });
    }
    expect(await store.get(before.id)).toEqual(before);
  });

  it.each([-1, NaN, Infinity, -Infinity, '1000', null, {}, 1n])(
    'SES-09 rejects %p as a time to live',
    async (ttlMs) => {
      const before = await store.touch((await create()).id);
      await target.elapse?.(HOUR);
      const error = await failureOf(() => store.sweepStale(ttlMs as number));

      expectError(error, InvalidInputError, 'INVALID_INPUT');
      expect(error).toMatchObject({ path: 'ttlMs' });
      expect(await store.get(before.id)).toEqual(before);
    },
  );

  it.each<[options: unknown, path: string]>([
    [{ maxSessions: -1 }, 'options.maxSessions'],
    [{ maxSessions: 1.5 }, 'options.maxSessions'],
    [{ maxSessions: NaN }, 'options.maxSessions'],
    [{ maxSessions: '5' }, 'options.maxSessions'],
    [{ maxSessions: null }, 'options.maxSessions'],
    [{ max: 5 }, 'options.max'],
    [null, 'options'],
    [5, 'options'],
  ])('SES-09 refuses %p as options of a sweep', async (options, path) => {
    const error = await failureOf(() => store.sweepStale(0, options as object));

    expectError(error, InvalidInputError, 'INVALID_INPUT');
    expect(error).toMatchObject({ path });
  });
});

function show(value: unknown): string {
  return typeof value === 'string' && value.length > 20 ? `of ${value.length} characters` : JSON.stringify(value);
}
