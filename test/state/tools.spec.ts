import {
  type JsonValue,
  type SessionStateService,
  InvalidInputError,
  StateSerializationError,
  TooLargeError,
} from 'nestjs-agent-sessions';
import { mintId } from '../../lib/common/ids.js';
import { eventually } from '../support/eventually.js';
import { anyText, describeStores } from '../support/orchestration.js';
import { rejection } from '../support/running-application.js';
import { collect, sessionState } from '../support/session-state.js';

const HOUR = 3_600_000;
/** Strings that a store or a key encoding could misread. */
const ODD = ['__proto__', 'constructor', 'a:b', 'ä', '日本語', '🙂', '%_', "'; DROP", 'A', 'a', ' x ', '[*]'];

describeStores('the tools module', (store) => {
  let state: SessionStateService;
  let id: string;

  beforeEach(() => {
    state = sessionState(store());
    id = mintId();
  });

  it('STA-04 stores a value by session, tool and key', async () => {
    const { tools } = state;
    const other = mintId();
    const made = await tools.set(id, 'search', 'cursor', { page: 1 });
    const entry = {
      tool: 'search',
      key: 'cursor',
      value: { page: 1 },
      version: expect.any(Number) as number,
      secret: false,
      createdAt: anyText(),
    };
    expect(made).toEqual(entry);
    expect(await tools.get(id, 'search', 'cursor')).toEqual(entry);
    for (const [session, tool, key] of [
      [other, 'search', 'cursor'],
      [id, 'Search', 'cursor'],
      [id, 'search', 'cursor '],
    ]) {
      expect(await tools.get(session, tool, key)).toBeNull();
    }
    expect(await tools.set(id, 'search', 'cursor', 'text')).toMatchObject({
      value: 'text',
      version: made!.version + 1,
    });
    expect(await tools.delete(id, 'search', 'cursor')).toBe(true);
    expect(await tools.delete(id, 'search', 'cursor')).toBe(false);
    expect(await tools.get(id, 'search', 'cursor')).toBeNull();
  });

  it('STA-04 sets a value only over the expected version', async () => {
    const { tools } = state;
    expect(await tools.set(id, 'search', 'k', 1, { ifVersion: 1 })).toBeNull();
    const { version } = (await tools.set(id, 'search', 'k', 1, { ifVersion: 0 }))!;
    expect(await tools.set(id, 'search', 'k', 2, { ifVersion: 0 })).toBeNull();
    await tools.increment(id, 'search', 'k');
    expect(await tools.set(id, 'search', 'k', 3, { ifVersion: version })).toBeNull();
    expect(await tools.set(id, 'search', 'k', 3, { ifVersion: version + 1 })).toMatchObject({
      value: 3,
      version: version + 2,
    });
  });

  it('STA-04 merges a patch at the first level, and creates a missing entry', async () => {
    const { tools } = state;
    expect(await tools.patch(id, 'search', 'k', { a: { x: 1 }, b: 1 })).toMatchObject({
      value: { a: { x: 1 }, b: 1 },
    });
    expect(await tools.patch(id, 'search', 'k', { a: { y: 2 }, c: null, d: undefined })).toMatchObject({
      value: { a: { y: 2 }, b: 1, c: null },
    });
    expect(await tools.get(id, 'search', 'k')).toMatchObject({ value: { a: { y: 2 }, b: 1, c: null } });
  });

  it('FIX-47 removes the keys of `unset` in a patch, and stores null as a value', async () => {
    const { tools } = state;
    await tools.set(id, 'search', 'k', { a: 1, b: 2, c: null, '': 3 });
    const unset = ['a', 'c', '', 'unknown', 'toString', '__proto__'];
    const entry = await tools.patch(id, 'search', 'k', { b: null, d: 4 }, { unset });
    expect(entry.value).toEqual({ b: null, d: 4 });
    expect(await tools.get(id, 'search', 'k')).toEqual(entry);
    expect(await tools.patch(id, 'search', 'new', {}, { unset: ['a'], ttlMs: HOUR })).toMatchObject({ value: {} });
  });

  it('FIX-47 loses none of many concurrent patches that remove keys', async () => {
    const { tools } = state;
    const many = Array.from({ length: 12 }, (_, n) => `k${n}`);
    await tools.set(id, 'search', 'o', Object.fromEntries(many.map((key) => [key, 'old'])));
    await Promise.all(many.map((key) => tools.patch(id, 'search', 'o', { [`new-${key}`]: 1 }, { unset: [key] })));
    expect((await tools.get(id, 'search', 'o'))?.value).toEqual(
      Object.fromEntries(many.map((key) => [`new-${key}`, 1])),
    );
  });

  it('FIX-47 removes keys from an entry at its size limit, and limits the size of unset', async () => {
    const { tools } = sessionState(store(), { maxBytes: 20 });
    await tools.set(id, 'search', 'o', { a: 'x'.repeat(12) });
    await rejection(tools.patch(id, 'search', 'o', { b: 1 }), TooLargeError);
    await rejection(tools.patch(id, 'search', 'o', {}, { unset: ['y'.repeat(20)] }), TooLargeError);
    expect(await tools.patch(id, 'search', 'o', { b: 1 }, { unset: ['a'] })).toMatchObject({ value: { b: 1 } });
  });

  it('STA-04 adds an increment, and creates a missing entry', async () => {
    const { tools } = state;
    expect(await tools.increment(id, 'search', 'calls')).toMatchObject({ value: 1 });
    expect(await tools.increment(id, 'search', 'calls', 4.5)).toMatchObject({ value: 5.5 });
    expect(await tools.increment(id, 'search', 'calls', -6)).toMatchObject({ value: -0.5 });
    expect(await tools.get(id, 'search', 'calls')).toMatchObject({ value: -0.5 });
  });

  it.each<[string, JsonValue, (of: SessionStateService['tools'], at: string) => Promise<unknown>]>([
    ['a patch of a number', 7, (tools, at) => tools.patch(at, 'search', 'k', { a: 1 })],
    ['a patch of a list', [7], (tools, at) => tools.patch(at, 'search', 'k', { a: 1 })],
    ['a patch of null', null, (tools, at) => tools.patch(at, 'search', 'k', { a: 1 })],
    ['an increment of an object', { a: 7 }, (tools, at) => tools.increment(at, 'search', 'k')],
    ['an increment of a string', '7', (tools, at) => tools.increment(at, 'search', 'k')],
    [
      'an increment that overflows',
      Number.MAX_VALUE,
      (tools, at) => tools.increment(at, 'search', 'k', Number.MAX_VALUE),
    ],
  ])('STA-04 rejects %s, and keeps the value', async (_, value, change) => {
    const { tools } = state;
    await tools.set(id, 'search', 'k', value, { secret: true });
    await rejection(change(tools, id), InvalidInputError);
    expect(await tools.get(id, 'search', 'k')).toMatchObject({ value, secret: true });
    await tools.set(id, 'search', 'k', typeof value === 'number' ? { b: 1 } : 1);
    expect(await tools.get(id, 'search', 'k')).toMatchObject({ secret: false });
  });

  it('STA-04 folds many changes without changing the value', async () => {
    const { tools } = state;
    const { expiresAt, version } = (await tools.set(id, 'search', 'n', 0, { ttlMs: HOUR }))!;
    for (let n = 1; n <= 100; n += 1) {
      expect(await tools.increment(id, 'search', 'n')).toMatchObject({ value: n, version: version + n, expiresAt });
    }
    const name = { namespace: 'agent-sessions:tools', scope: 'search', key: 'n' };
    const document = await store().state.get({ ...name, sessionId: id });
    expect(document?.version).toBe(version + 100);
    expect(document?.batches.length).toBeLessThan(32);
    expect(await tools.get(id, 'search', 'n')).toMatchObject({ value: 100, version: version + 100, expiresAt });
  });

  it('STA-04 loses none of many concurrent increments and patches', async () => {
    const { tools } = state;
    const many = Array.from({ length: 80 }, (_, n) => n);
    await Promise.all(
      many.map((n) => (n % 2 ? tools.increment(id, 'search', 'n') : tools.patch(id, 'search', 'o', { [`k${n}`]: n }))),
    );
    expect(await tools.get(id, 'search', 'n')).toMatchObject({ value: 40 });
    const { value } = (await tools.get(id, 'search', 'o'))!;
    expect(value).toEqual(Object.fromEntries(many.filter((n) => n % 2 === 0).map((n) => [`k${n}`, n])));
  });

  it('STA-04 expires an entry by the store’s clock; patches and increments do not move its expiry', async () => {
    const { tools } = state;
    const made = await tools.set(id, 'search', 'long', 1, { ttlMs: HOUR });
    expect(made?.expiresAt).toBeDefined();
    const counted = await tools.increment(id, 'search', 'long', 1, { ttlMs: 1 });
    expect(counted.expiresAt).toBe(made?.expiresAt);
    await tools.set(id, 'search', 'lasting', { a: 1 });
    expect(await tools.patch(id, 'search', 'lasting', { b: 1 }, { ttlMs: 1 })).not.toHaveProperty('expiresAt');

    await tools.set(id, 'search', 'short', 1, { ttlMs: 300 });
    await tools.increment(id, 'search', 'made', 1, { ttlMs: 300 });
    await tools.patch(id, 'search', 'patched', { a: 1 }, { ttlMs: 300 });
    await eventually(async () => {
      const keys = (await tools.list(id)).items.map(({ key }) => key);
      return keys.join() === 'lasting,long';
    });
    expect(await tools.get(id, 'search', 'short')).toBeNull();
    expect(await tools.set(id, 'search', 'short', 2, { ifVersion: 0 })).toMatchObject({ value: 2 });
    expect(await tools.increment(id, 'search', 'made')).toMatchObject({ value: 1 });
    // After a new write, it no longer expires.
    expect(await tools.set(id, 'search', 'long', 1)).not.toHaveProperty('expiresAt');
  });

  it('STA-04 lists by tool and key, page by page', async () => {
    const { tools } = state;
    const places = ['b/2', 'a/1', 'b/1', 'a/Z', 'a/ä', 'a/10'];
    for (const place of places) await tools.set(id, ...(place.split('/') as [string, string]), place);
    const seen: string[][] = [];
    for (let after: string | undefined; ;) {
      const { items, next } = await tools.list(id, { limit: 4, ...(after ? { after } : {}) });
      seen.push(items.map(({ value }) => value as string));
      if (next === undefined) break;
      after = next;
    }
    expect(seen).toEqual([
      ['a/1', 'a/10', 'a/Z', 'a/ä'],
      ['b/1', 'b/2'],
    ]);
    expect((await tools.list(id, { tool: 'b' })).items.map(({ key }) => key)).toEqual(['1', '2']);
    expect(await tools.list(id, { tool: 'c' })).toEqual({ items: [] });
    expect((await tools.list(id, { limit: 6 })).next).toBeUndefined();
  });

  it('STA-04 hides secret values from descriptions and exports, but not from the application', async () => {
    const { tools } = state;
    const secret = `hunter2 ${mintId()}`;
    await tools.set(id, 'pay', 'token', { secret }, { secret: true });
    await tools.patch(id, 'pay', 'token', { more: secret });
    await tools.set(id, 'pay', 'plain', 'shown');
    const described = await state.describe({ sessionId: id, includeData: true });
    const exported = await collect(state.export(id));

    expect(JSON.stringify([described, exported])).not.toContain(secret);
    const { data } = described.stores.find((report) => report.name === 'tools')!;
    expect(data?.items).toEqual([
      expect.objectContaining({ key: 'plain', value: 'shown', secret: false }),
      { tool: 'pay', key: 'token', secret: true, version: expect.any(Number) as number, createdAt: anyText() },
    ]);
    expect(exported).toEqual([{ store: 'tools', item: expect.objectContaining({ key: 'plain' }) as object }]);
    expect((await tools.list(id)).items[1]).toMatchObject({ value: { secret, more: secret }, secret: true });
    // A new `set` without `secret` makes the entry public.
    expect(await tools.set(id, 'pay', 'token', 'public')).toMatchObject({ secret: false });
  });

  it('STA-04 applies `secret` of a patch or an increment only when it creates the entry', async () => {
    const { tools } = state;
    const made = await tools.patch(id, 'pay', 'token', { access: 'hunter2' }, { secret: true, ttlMs: HOUR });
    expect(made).toMatchObject({ secret: true, expiresAt: anyText() });
    expect(await tools.patch(id, 'pay', 'token', { refresh: 'hunter2' })).toMatchObject({ secret: true });
    expect(await tools.increment(id, 'pay', 'pin', 7341, { secret: true })).toMatchObject({ secret: true });
    await tools.set(id, 'pay', 'plain', {});
    expect(await tools.patch(id, 'pay', 'plain', { a: 1 }, { secret: true })).toMatchObject({ secret: false });
    // A patch creates an expired entry again.
    await tools.set(id, 'pay', 'brief', { access: 'hunter2' }, { secret: true, ttlMs: 1 });
    await eventually(async () => (await tools.get(id, 'pay', 'brief')) === null);
    await tools.patch(id, 'pay', 'brief', { access: 'hunter2' }, { secret: true });
    const shown = [await state.describe({ sessionId: id, includeData: true }), await collect(state.export(id))];
    expect(JSON.stringify(shown)).not.toMatch(/hunter2|7341/);
  });

  it('STA-04 does not grow an entry by rejected changes', async () => {
    const { tools } = sessionState(store(), { maxBytes: 20_000 });
    await tools.set(id, 'search', 'o', { a: 'x'.repeat(10_000) });
    await tools.set(id, 'search', 'list', []);
    for (let n = 0; n < 40; n += 1) {
      await rejection(tools.patch(id, 'search', 'o', { b: 'y'.repeat(12_000) }), TooLargeError);
      await rejection(tools.patch(id, 'search', 'list', { b: 'y'.repeat(12_000) }), InvalidInputError);
      await rejection(tools.increment(id, 'search', 'o'), InvalidInputError);
    }
    const documents = await store().state.list({ namespace: 'agent-sessions:tools', sessionId: id, limit: 10 });
    expect(documents).toHaveLength(2);
    for (const { document } of documents) expect(JSON.stringify(document).length).toBeLessThan(20_000);
    await tools.patch(id, 'search', 'o', { b: 'y'.repeat(9_000) });
    expect((await tools.get(id, 'search', 'o'))?.value).toMatchObject({ b: 'y'.repeat(9_000) });
  });

  it('STA-04 puts no secrets into errors', async () => {
    const secret = `hunter2 ${mintId()}`;
    const tools = sessionState(store(), { maxBytes: 60 }).tools;
    await tools.set(id, 'pay', 'token', { secret }, { secret: true });
    const errors = [
      await rejection(tools.increment(id, 'pay', 'token'), InvalidInputError),
      await rejection(tools.patch(id, 'pay', 'token', { more: secret }), TooLargeError),
      await rejection(tools.set(id, 'pay', 'token', [secret, secret], { secret: true }), TooLargeError),
      await rejection(
        tools.set(id, 'pay', 'token', { secret, at: new Date() }, { secret: true }),
        StateSerializationError,
      ),
    ];
    for (const error of errors) expect(JSON.stringify([error, error.message, error.stack])).not.toContain(secret);
    expect(await tools.get(id, 'pay', 'token')).toMatchObject({ value: { secret } });
  });

  it.each(ODD)('STA-04 keeps entries with unusual names apart: %j', async (odd) => {
    const { tools } = state;
    await tools.set(id, 'search', 'k', 'plain');
    // FIX-64 rejects this key in values.
    const value = odd === '__proto__' ? {} : { [odd]: odd };
    await tools.set(id, odd, odd, value);
    await tools.patch(id, odd, odd, { n: odd });
    expect(await tools.get(id, odd, odd)).toMatchObject({ tool: odd, key: odd });
    expect((await tools.get(id, odd, odd))?.value).toEqual({ ...value, n: odd });
    expect((await tools.list(id, { tool: odd })).items).toHaveLength(1);
    const { next } = await tools.list(id, { limit: 1 });
    expect((await tools.list(id, { after: next! })).items).toHaveLength(1);
    expect(({} as { n?: unknown }).n).toBeUndefined();
  });

  it('STA-04 accepts values up to the size limit, 256 KiB by default', async () => {
    const { tools } = state;
    const most = 'x'.repeat(262_142);
    expect(await tools.set(id, 'search', 'k', most)).not.toBeNull();
    expect((await tools.get(id, 'search', 'k'))?.value).toHaveLength(most.length);
    const error = await rejection(tools.set(id, 'search', 'k', `${most}x`), TooLargeError);
    expect(error).toMatchObject({ bytes: 262_145, maxBytes: 262_144 });
    await rejection(tools.patch(id, 'search', 'p', { most }), TooLargeError);
    expect(await tools.get(id, 'search', 'p')).toBeNull();

    const small = sessionState(store(), { maxBytes: 20 }).tools;
    await small.patch(id, 'search', 'o', { a: 'ää' });
    await rejection(small.patch(id, 'search', 'o', { b: 'ää' }), TooLargeError);
    // Reads do not depend on the reader's limit.
    expect((await tools.get(id, 'search', 'o'))?.value).toEqual({ a: 'ää' });
    expect((await small.patch(id, 'search', 'o', { a: 'ö' })).value).toEqual({ a: 'ö' });
  });

  it.each<[string, (of: SessionStateService['tools'], at: string) => Promise<unknown>]>([
    ['an empty session id', (tools) => tools.get('', 'search', 'k')],
    ['a session id of null', (tools) => tools.set(null as never, 'search', 'k', 1)],
    ['an empty tool', (tools, at) => tools.set(at, '', 'k', 1)],
    ['an empty key', (tools, at) => tools.delete(at, 'search', '')],
    ['a key with control characters', (tools, at) => tools.increment(at, 'search', 'a\u001fb')],
    ['a time to live of 0', (tools, at) => tools.set(at, 'search', 'k', 1, { ttlMs: 0 })],
    ['an unknown option', (tools, at) => tools.patch(at, 'search', 'k', {}, { ifVersion: 1 } as never)],
    ['unset keys that are not a list', (tools, at) => tools.patch(at, 'search', 'k', {}, { unset: 'a' } as never)],
    ['unset keys of null', (tools, at) => tools.patch(at, 'search', 'k', {}, { unset: null } as never)],
    ['an unset key that is not a string', (tools, at) => tools.patch(at, 'search', 'k', {}, { unset: [1] } as never)],
    ['a list of unset keys with holes', (tools, at) => tools.patch(at, 'search', 'k', {}, { unset: new Array(2) })],
    [
      'more than 1000 unset keys',
      (tools, at) => tools.patch(at, 'search', 'k', {}, { unset: Array.from({ length: 1001 }, String) }),
    ],
    ['a key that a patch sets and removes', (tools, at) => tools.patch(at, 'search', 'k', { a: 1 }, { unset: ['a'] })],
    ['unset keys of a set', (tools, at) => tools.set(at, 'search', 'k', {}, { unset: ['a'] } as never)],
    ['unset keys of an increment', (tools, at) => tools.increment(at, 'search', 'k', 1, { unset: ['a'] } as never)],
    ['a `secret` that is not a boolean', (tools, at) => tools.increment(at, 'search', 'k', 1, { secret: 1 } as never)],
    ['an increment of NaN', (tools, at) => tools.increment(at, 'search', 'k', NaN)],
    ['a page limit that is too large', (tools, at) => tools.list(at, { limit: 1001 })],
    ['a page after an invalid cursor', (tools, at) => tools.list(at, { after: '["a"]' })],
    ['a page after broken JSON', (tools, at) => tools.list(at, { after: '[' })],
  ])('STA-09 rejects %s, and writes nothing', async (_, call) => {
    await rejection(call(state.tools, id), InvalidInputError);
    expect(await state.tools.list(id)).toEqual({ items: [] });
  });

  it('STA-04 rejects values that JSON cannot represent', async () => {
    await rejection(state.tools.set(id, 'search', 'k', undefined), StateSerializationError);
    await rejection(state.tools.patch(id, 'search', 'k', [] as never), StateSerializationError);
    expect(await state.tools.get(id, 'search', 'k')).toBeNull();
  });
});
