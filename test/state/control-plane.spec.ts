import {
  InvalidInputError,
  type SessionsAdapter,
  type SessionStateService,
  StateModuleError,
  StateSerializationError,
  StoreUnavailableError,
} from 'nestjs-agent-sessions';
import { type StateStoreReport } from 'nestjs-agent-sessions/http';
import { mintId } from '../../lib/common/ids.js';
import { describeStores } from '../support/orchestration.js';
import { recordingAdapter } from '../support/recording-adapter.js';
import { rejection } from '../support/running-application.js';
import { collect, sessionState } from '../support/session-state.js';

const NAMES = ['conversation', 'tools', 'task', 'flow'];

/** Adds items to every module. */
async function fill(state: SessionStateService, id: string, count = 1): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    await state.conversation.append(id, [{ role: 'user', content: `message ${n}` }]);
    await state.tools.set(id, 'search', `key ${n}`, n);
    await state.task.create(id, { id: `task-${n}` });
    await state.flow.save(id, `flow ${n}`, n);
  }
}

describeStores('the control plane in process', (store) => {
  let state: SessionStateService;
  let id: string;

  beforeEach(() => {
    state = sessionState(store());
    id = mintId();
  });

  const itemsIn = async (sessionId = id): Promise<(number | undefined)[]> =>
    (await state.describe({ sessionId })).stores.map(({ itemCount }) => itemCount);
  const reportOf = (name: string, reports: readonly StateStoreReport[]): StateStoreReport =>
    reports.find((report) => report.name === name)!;

  it('STA-22 describes the state of a session, in the order of the modules', async () => {
    await fill(state, id, 3);
    expect(await state.describe({ sessionId: id, metadata: { ticket: 7 } })).toEqual({
      operation: 'describe',
      sessionId: id,
      stores: [
        expect.objectContaining({ name: 'conversation', exists: true, itemCount: 3, messageCount: 3 }) as object,
        { name: 'tools', enabled: true, exists: true, itemCount: 3, cleared: false, compacted: false, metadata: {} },
        { name: 'task', enabled: true, exists: true, itemCount: 3, cleared: false, compacted: false, metadata: {} },
        { name: 'flow', enabled: true, exists: true, itemCount: 3, cleared: false, compacted: false, metadata: {} },
      ],
      cleared: [],
      compacted: [],
      missing: [],
      errors: [],
      metadata: { ticket: 7 },
    });
    const some = await state.describe({ sessionId: id, stores: ['flow', 'tools', 'flow'] });
    expect(some.stores.map(({ name }) => name)).toEqual(['tools', 'flow']);
  });

  it('FIX-46 reports the number of messages that windows are cut from as windowCount', async () => {
    const counts = async (): Promise<unknown> => {
      const { messageCount, windowCount } = (await state.describe({ sessionId: id })).stores[0];
      return { messageCount, windowCount };
    };
    expect(await counts()).toEqual({ messageCount: 0, windowCount: 0 });
    await state.conversation.append(id, [{ role: 'system', content: 'You help.' }]);
    expect(await counts()).toEqual({ messageCount: 1, windowCount: 1 });
    for (let n = 0; n < 6; n += 1) await state.conversation.append(id, [{ role: 'user', content: `message ${n}` }]);
    expect(await counts()).toEqual({ messageCount: 7, windowCount: 7 });

    const { stores } = await state.compact({ sessionId: id, stores: ['conversation'], maxMessages: 2 });
    // The leading system message and two more.
    expect(stores[0]).toMatchObject({ messageCount: 7, windowCount: 3, metadata: { messagesAfter: 3 } });
    expect(await counts()).toEqual({ messageCount: 7, windowCount: 3 });
    await state.conversation.append(id, [{ role: 'user', content: 'one more' }]);
    expect(await counts()).toEqual({ messageCount: 8, windowCount: 4 });

    const reset = await state.reset({ sessionId: id, stores: ['conversation'] });
    expect(reset.stores[0]).toMatchObject({ messageCount: 0, windowCount: 0 });
    expect(await counts()).toEqual({ messageCount: 0, windowCount: 0 });
    expect((await state.describe({ sessionId: id, stores: ['tools'] })).stores[0]).not.toHaveProperty('windowCount');
  });

  it('STA-22 describes an absent session without an error or a write', async () => {
    const calls: string[] = [];
    const result = await sessionState(recordingAdapter(store(), calls)).describe({ sessionId: id, includeData: true });
    expect(result).toMatchObject({ errors: [], missing: [] });
    expect(result.stores.map(({ exists, itemCount, data }) => [exists, itemCount, data])).toEqual(
      NAMES.map(() => [false, 0, { items: [] }]),
    );
    expect(calls.filter((call) => !/\.(get|list|count|window|page)$/.test(call))).toEqual([]);
    expect(result.stores[0].messageCount).toBe(0);
  });

  it('STA-22 lists the modules without a session, without a query to the store', async () => {
    const calls: string[] = [];
    const some = sessionState(recordingAdapter(store(), calls), { modules: ['flow', 'tools'] });
    const result = await some.describe({ stores: ['task', 'flow', 'cart'] });
    expect(result).toMatchObject({ sessionId: null, missing: ['task', 'cart'] });
    expect(result.stores).toEqual([{ name: 'flow', enabled: true, cleared: false, compacted: false, metadata: {} }]);
    expect((await some.describe()).stores.map(({ name }) => name)).toEqual(['tools', 'flow']);
    expect(calls).toEqual([]);
  });

  it.each(NAMES)('STA-22 shows the items of %s, page by page', async (name) => {
    await fill(state, id, 5);
    const pages: number[] = [];
    const items: unknown[] = [];
    for (let after: string | undefined; ;) {
      const request = { sessionId: id, includeData: true, limit: 2, stores: [name], ...(after ? { after } : {}) };
      const { data } = (await state.describe(request)).stores[0];
      pages.push(data!.items.length);
      items.push(...data!.items);
      if (data!.next === undefined) break;
      after = data!.next;
    }
    expect(pages).toEqual([2, 2, 1]);
    expect(new Set(items.map((item) => JSON.stringify(item))).size).toBe(5);
    const { data } = (await state.describe({ sessionId: id, includeData: true, stores: [name] })).stores[0];
    expect(data).toEqual({ items });
  });

  it.each(['conversation', 'tools'])('STA-22 ends a page of large items of %s early', async (name) => {
    const large = 'x'.repeat(250_000);
    for (let n = 0; n < 6; n += 1) {
      if (name === 'tools') await state.tools.set(id, 'search', `${n}`, large);
      else await state.conversation.append(id, [{ role: 'user', content: large }]);
    }
    const pages: number[] = [];
    for (let after: string | undefined; ;) {
      const request = { sessionId: id, includeData: true, stores: [name], ...(after ? { after } : {}) };
      const { data } = (await state.describe(request)).stores[0];
      pages.push(data!.items.length);
      if (data!.next === undefined) break;
      after = data!.next;
    }
    expect(pages).toEqual([4, 2]);
    // An item that is larger than a page is still shown.
    const huge = sessionState(store(), { maxBytes: 2_000_000 });
    for (const key of ['7', '8']) await huge.tools.set(id, 'search', key, 'x'.repeat(1_500_000));
    const first = await huge.tools.list(id, { after: '["search","5"]' });
    expect(first.items.map(({ key }) => key)).toEqual(['7']);
    const second = await huge.tools.list(id, { after: first.next! });
    expect(second.items.map(({ key }) => key)).toEqual(['8']);
    expect(second.next).toBeUndefined();
  });

  it('STA-22 passes all shown data through the redactor, with its module and session', async () => {
    await fill(state, id);
    const told: unknown[] = [];
    const redacting = sessionState(store(), {
      redact: (item, of) => {
        told.push(of);
        return { only: Object.keys(item as object).length > 0 };
      },
    });
    const { stores } = await redacting.describe({ sessionId: id, includeData: true });
    expect(stores.map(({ data }) => data)).toEqual(NAMES.map(() => ({ items: [{ only: true }] })));
    expect(told).toEqual(expect.arrayContaining(NAMES.map((name) => ({ store: name, sessionId: id }))));
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('secret of the redactor');
      },
    ],
    ['returns nothing', () => undefined as never],
    ['returns a value that is not JSON', () => new Date() as never],
  ])('STA-22 shows nothing if the redactor %s', async (_, redact) => {
    await fill(state, id);
    const result = await sessionState(store(), { redact }).describe({ sessionId: id, includeData: true });
    expect(result.errors.map((error) => error.store)).toEqual(NAMES);
    expect(JSON.stringify(result)).not.toMatch(/secret of|message 0/);
    for (const { data } of result.stores) expect(data).toBeUndefined();
  });

  it('STA-23 clears every module of a session atomically, and reports the cleared modules', async () => {
    const other = mintId();
    await fill(state, id, 2);
    await fill(state, other);
    await state.tools.delete(id, 'search', 'key 0');
    await state.tools.delete(id, 'search', 'key 1');
    const calls: string[] = [];
    const result = await sessionState(recordingAdapter(store(), calls)).reset({ sessionId: id });

    expect(result).toMatchObject({ cleared: ['conversation', 'task', 'flow'], missing: [], errors: [] });
    expect(result.stores.map(({ exists, cleared, itemCount }) => [exists, cleared, itemCount])).toEqual([
      [true, true, 0],
      [false, false, 0],
      [true, true, 0],
      [true, true, 0],
    ]);
    expect(calls).toEqual(['state.get', 'state.reset']);
    expect(await itemsIn()).toEqual([0, 0, 0, 0]);
    expect(await itemsIn(other)).toEqual([1, 1, 1, 1]);
    expect(await store().state.count({ namespace: 'agent-sessions:task', sessionId: id })).toBe(0);
    expect((await state.reset({ sessionId: id })).cleared).toEqual([]);
  });

  it.each(NAMES)('STA-02 STA-23 clears only %s', async (name) => {
    await fill(state, id);
    const result = await state.reset({ sessionId: id, stores: [name, 'cart'] });
    expect(result).toMatchObject({ cleared: [name], missing: ['cart'], errors: [] });
    expect(result.stores).toHaveLength(1);
    expect(await itemsIn()).toEqual(NAMES.map((other) => (other === name ? 0 : 1)));
  });

  it('STA-23 reports in a dry run what would be cleared, and clears nothing', async () => {
    await fill(state, id);
    await state.flow.delete(id, 'flow 0');
    const calls: string[] = [];
    const result = await sessionState(recordingAdapter(store(), calls)).reset({ sessionId: id, dryRun: true });
    expect(result.cleared).toEqual([]);
    expect(
      result.stores.map(({ exists, cleared, itemCount, metadata }) => [
        exists,
        cleared,
        itemCount,
        metadata.wouldClear,
      ]),
    ).toEqual([
      [true, false, 1, true],
      [true, false, 1, true],
      [true, false, 1, true],
      [false, false, 0, false],
    ]);
    expect(calls.filter((call) => !/\.(get|list|count|window|page)$/.test(call))).toEqual([]);
    expect(await itemsIn()).toEqual([1, 1, 1, 0]);
    const all = await state.reset({ all: true, dryRun: true });
    expect(all.cleared).toEqual([]);
    expect(await itemsIn()).toEqual([1, 1, 1, 0]);
  });

  it.each<[string, object]>([
    ['neither session nor all', {}],
    ['all: false', { all: false }],
    ['a session and all', { sessionId: 'ann', all: true }],
    ['an empty session id', { sessionId: '' }],
    ['a session id of null', { sessionId: null }],
    ['an unknown key', { all: true, session: 'ann' }],
    ['an empty list of stores', { all: true, stores: [] }],
    ['stores that are not a list', { all: true, stores: 'tools' }],
    ['an `all` that is not a boolean', { all: 1 }],
    ['a request of null', null as never],
    ['a request that is a list', [] as never],
    ['a request that is a string', 'all' as never],
  ])('STA-23 rejects a reset with %s, and clears nothing', async (_, request) => {
    await fill(state, id);
    await rejection(state.reset(request), InvalidInputError);
    await rejection(state.reset({ all: true, metadata: { at: new Date() } }), StateSerializationError);
    expect(await itemsIn()).toEqual([1, 1, 1, 1]);
  });

  it.each<[string, object]>([
    ['data without a session', { includeData: true }],
    ['a page without data', { sessionId: 'ann', after: '1', stores: ['conversation'] }],
    ['a page of all modules', { sessionId: 'ann', includeData: true, after: '1' }],
    ['a page of two modules', { sessionId: 'ann', includeData: true, after: '1', stores: ['conversation', 'tools'] }],
    ['an invalid cursor', { sessionId: 'ann', includeData: true, after: '{', stores: ['tools'] }],
    [
      'a cursor of another module',
      { sessionId: 'ann', includeData: true, after: '["a","b"]', stores: ['conversation'] },
    ],
    ['an empty session id', { sessionId: '' }],
    ['an unknown key', { all: true }],
    ['a page limit without data', { sessionId: 'ann', limit: 10 }],
    ['a page limit of 0', { sessionId: 'ann', includeData: true, limit: 0 }],
    ['a page limit that is too large', { sessionId: 'ann', includeData: true, limit: 201 }],
  ])('STA-20 rejects a description with %s', async (_, request) => {
    await rejection(state.describe(request), InvalidInputError);
  });

  it.each(['["","a\\u0000"]', '["\\ud800","a"]', '["",""]', '["a"]', '["a",7]', 'null'])(
    'FIX-52 rejects the forged cursor %s in every module',
    async (after) => {
      await rejection(state.tools.list(id, { after }), InvalidInputError);
      await rejection(state.task.list(id, { after }), InvalidInputError);
      await rejection(state.flow.list(id, { after }), InvalidInputError);
      for (const name of ['conversation', 'tools', 'task', 'flow']) {
        const request = { sessionId: id, includeData: true, stores: [name], after };
        await rejection(state.describe(request), InvalidInputError);
      }
    },
  );

  it('STA-09 isolates sessions with similar ids', async () => {
    const others = [`${id}:a`, `${id}-`, id.toUpperCase() === id ? id.toLowerCase() : id.toUpperCase()];
    await fill(state, id);
    for (const other of others) expect(await itemsIn(other)).toEqual([0, 0, 0, 0]);
    for (const other of others) await fill(state, other);
    await state.reset({ sessionId: others[0] });
    expect(await Promise.all([id, ...others].map(itemsIn))).toEqual([
      [1, 1, 1, 1],
      [0, 0, 0, 0],
      [1, 1, 1, 1],
      [1, 1, 1, 1],
    ]);
  });

  it.each(['', undefined, null])(
    'STA-09 rejects the session id %j in every module (known failure: absent ids were shared)',
    async (none) => {
      const of = none as string;
      const calls: string[] = [];
      const service = sessionState(recordingAdapter(store(), calls));
      const { conversation, tools, task, flow } = service;
      const refused = [
        conversation.append(of, [{ role: 'user', content: 'hi' }]),
        conversation.list(of),
        conversation.clear(of),
        tools.get(of, 'search', 'k'),
        tools.set(of, 'search', 'k', 1),
        tools.patch(of, 'search', 'k', {}),
        tools.increment(of, 'search', 'k'),
        tools.delete(of, 'search', 'k'),
        tools.list(of),
        task.create(of),
        task.get(of, 't'),
        task.transition(of, 't', 'working'),
        task.setFlowState(of, 't', 1),
        task.list(of),
        task.delete(of, 't'),
        flow.save(of, 'f', 1),
        flow.load(of, 'f'),
        flow.list(of),
        flow.versions(of, 'f'),
        flow.delete(of, 'f'),
        service.reset({ sessionId: of }),
        service.compact({ sessionId: of }),
      ];
      for (const call of refused) await rejection(call, InvalidInputError);
      expect(() => service.export(of)).toThrow(InvalidInputError);
      expect(calls).toEqual([]);
    },
  );

  it('STA-24 compacts the conversation and no other module', async () => {
    await fill(state, id, 5);
    const dry = await state.compact({ sessionId: id, maxMessages: 2, dryRun: true });
    expect(dry).toMatchObject({ compacted: [], errors: [] });
    expect(reportOf('conversation', dry.stores).metadata).toMatchObject({ messagesBefore: 5, messagesAfter: 2 });
    const result = await state.compact({ sessionId: id, maxMessages: 2 });
    expect(result).toMatchObject({ operation: 'compact', compacted: ['conversation'], cleared: [], missing: [] });
    expect(result.stores[0]).toMatchObject({
      exists: true,
      compacted: true,
      messageCount: 5,
      metadata: { messagesBefore: 5, messagesAfter: 2, through: 3 },
    });
    expect(result.stores.slice(1).map(({ compacted, metadata }) => [compacted, metadata])).toEqual(
      NAMES.slice(1).map(() => [false, { compactable: false }]),
    );
    expect((await state.describe({ sessionId: id })).stores[0]).toMatchObject({
      messageCount: 5,
      metadata: { through: 3 },
    });
    expect((await state.compact({ sessionId: id, maxMessages: 2 })).compacted).toEqual([]);
    expect(await state.compact({ sessionId: mintId() })).toMatchObject({ compacted: [], errors: [] });
    await rejection(state.compact({}), InvalidInputError);
    await rejection(state.compact({ sessionId: id, strategy: 'newest' as never }), InvalidInputError);
  });

  it('STA-24 reports a failed compaction as an error of its module', async () => {
    await fill(state, id, 30);
    const result = await state.compact({ sessionId: id, strategy: 'summary' });
    expect(result).toMatchObject({
      compacted: [],
      errors: [{ store: 'conversation', code: 'COMPACTION_NOT_CONFIGURED' }],
    });
    expect(result.stores[0].error).toEqual(result.errors[0]);
  });

  it('STA-10 exports all modules in order, reading page by page', async () => {
    await fill(state, id, 105);
    const calls: string[] = [];
    const exported = await collect(sessionState(recordingAdapter(store(), calls)).export(id));
    const counts = NAMES.map((name) => exported.filter((item) => item.store === name).length);
    expect(counts).toEqual([105, 105, 105, 105]);
    expect([...new Set(exported.map((item) => item.store))]).toEqual(NAMES);
    expect(calls.filter((call) => call === 'conversations.page')).toHaveLength(2);
    expect(calls.filter((call) => call === 'state.list')).toHaveLength(6);
    expect(await collect(state.export(mintId()))).toEqual([]);
    expect(() => state.export('')).toThrow(InvalidInputError);
  });

  it('STA-01 reports a disabled module as missing, and does not change its data', async () => {
    await fill(state, id);
    const some = sessionState(store(), { modules: ['task', 'conversation'] });
    const result = await some.reset({ sessionId: id, stores: ['flow', 'tools'] });
    expect(result).toMatchObject({ stores: [], cleared: [], missing: ['flow', 'tools'] });
    expect((await some.reset({ sessionId: id })).cleared).toEqual(['conversation', 'task']);
    expect(await itemsIn()).toEqual([0, 1, 0, 1]);
    expect(() => some.tools).toThrow(StateModuleError);
    expect(() => some.flow).toThrow('The state module flow is not enabled. Enabled: conversation, task.');
    expect((await collect(some.export(id))).length).toBe(0);
    const none = sessionState(store(), { modules: [] });
    expect(await none.describe({ sessionId: id })).toMatchObject({ stores: [], missing: [], errors: [] });
    expect(await none.reset({ sessionId: id })).toMatchObject({ cleared: [], errors: [] });
    expect(await itemsIn()).toEqual([0, 1, 0, 1]);
  });

  it('STA-26 reports an unavailable store as an error of each module, without its details', async () => {
    const fail = (): never => {
      throw new StoreUnavailableError('postgres://desk:hunter2@db');
    };
    const { state: documents } = store();
    const broken = Object.assign(Object.create(documents) as SessionsAdapter['state'], { count: fail, reset: fail });
    await fill(state, id);
    const failing = sessionState({ ...store(), state: broken });
    const described = await failing.describe({ sessionId: id });
    expect(described.errors.map(({ store: name, code }) => [name, code])).toEqual(
      ['tools', 'task', 'flow'].map((name) => [name, 'STORE_UNAVAILABLE']),
    );
    expect(described.stores[0]).toMatchObject({ name: 'conversation', exists: true });
    const reset = await failing.reset({ sessionId: id });
    expect(reset.errors.map(({ store: name }) => name)).toEqual(NAMES);
    expect(reset.cleared).toEqual([]);
    expect(JSON.stringify([described, reset])).not.toContain('hunter2');
  });
});

describeStores('a reset of every session', (store) => {
  it('STA-23 clears first the named and then all modules of every session', async () => {
    const state = sessionState(store());
    const ids = Array.from({ length: 105 }, () => mintId());
    for (const id of ids) {
      await state.conversation.append(id, [{ role: 'user', content: 'hi' }]);
      await state.tools.set(id, 'search', 'k', 1);
    }
    await fill(state, ids[0]);
    const counts = async (name: string): Promise<number> => {
      const described = await Promise.all(ids.map((sessionId) => state.describe({ sessionId, stores: [name] })));
      return described.reduce((sum, { stores }) => sum + stores[0].itemCount!, 0);
    };
    const first = await state.reset({ all: true, stores: ['tools'] });
    expect(first).toMatchObject({ sessionId: null, cleared: ['tools'], errors: [] });
    expect(first.stores).toEqual([
      { name: 'tools', enabled: true, cleared: true, compacted: false, metadata: { documents: 106 } },
    ]);
    expect(await Promise.all(NAMES.map(counts))).toEqual([106, 0, 1, 1]);

    const second = await state.reset({ all: true });
    expect(second.cleared).toEqual(['conversation', 'task', 'flow']);
    expect(second.stores[0].metadata).toEqual({ messages: 106 });
    expect(await Promise.all(NAMES.map(counts))).toEqual([0, 0, 0, 0]);
    expect((await state.reset({ all: true })).cleared).toEqual([]);
  });

  it('STA-23 ends a reset of all sessions while others create documents faster than it deletes them', async () => {
    const { state: documents } = store();
    let deletions = 0;
    const evictIdle: typeof documents.evictIdle = async (namespace, keep, limit) => {
      deletions += 1;
      const deleted = await documents.evictIdle(namespace, keep, limit);
      // A reset that waits for a quiet moment never ends.
      if (namespace.endsWith('tools') && deletions < 1000)
        await sessionState(store()).tools.set(mintId(), 'cart', 'k', 1);
      return deleted;
    };
    const busy = Object.assign(Object.create(documents) as typeof documents, { evictIdle });
    await sessionState(store()).tools.set(mintId(), 'cart', 'k', 1);

    const { cleared } = await sessionState({ ...store(), state: busy }).reset({ all: true, stores: ['tools'] });
    expect(cleared).toEqual(['tools']);
    expect(deletions).toBeLessThan(50);
  });
});
