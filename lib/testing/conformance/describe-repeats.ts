import { type NewMessage } from '../../ledger/conversation.store.js';
import { type StateAppend, type StateDocument } from '../../ledger/state.store.js';
import { describeRepeatsOfSessions } from './describe-repeats-of-sessions.js';
import { describeRepeatsOfTurns } from './describe-repeats-of-turns.js';
import { versionAfter, written } from './document-fixtures.js';
import { itMayBeSentTwice, Refused } from './sent-twice.js';
import { HOUR } from './session-fixtures.js';
import { DESK, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

/** Tests that calls of every port may be sent again after a lost response. */
export function describeRepeats(context: ConformanceContext): void {
  describe('sent twice', () => {
    describe('turns', () => describeRepeatsOfTurns(context));
    describe('sessions', () => describeRepeatsOfSessions(context));
    describe('checkpoints', () => describeRepeatsOfCheckpoints(context));
    describe('conversations', () => describeRepeatsOfAppend(context));
    describe('documents', () => describeRepeatsOfDocuments(context));
    describe('leases', () => describeRepeatsOfLeases(context));
  });
}

function describeRepeatsOfCheckpoints(context: ConformanceContext): void {
  itMayBeSentTwice('BOT-20 append', context, async () => {
    const lane = await withCheckpoints(3);
    const next = lane.checkpoint(3);
    return {
      send: ({ checkpoints }) => checkpoints.append(next, 2),
      again: () => new Refused('CHECKPOINT_CONFLICT'),
      look: () => lane.snapshot(),
    };
  });

  itMayBeSentTwice('BOT-21 prune', context, async () => {
    const lane = await withCheckpoints(5);
    return {
      send: ({ checkpoints }) => checkpoints.prune(DESK, lane.sessionId, 2),
      again: () => 0,
      look: () => lane.snapshot(),
    };
  });

  itMayBeSentTwice('BOT-20 delete', context, async () => {
    const lane = await withCheckpoints(2);
    return {
      send: ({ checkpoints }) => checkpoints.delete(DESK, lane.sessionId),
      again: () => undefined,
      look: () => lane.snapshot(),
    };
  });

  async function withCheckpoints(count: number): Promise<TestLane> {
    const lane = await TestLane.open(context);
    for (let index = 0; index < count; index += 1) {
      await context.adapter.checkpoints.append(lane.checkpoint(index), 'all');
    }
    return lane;
  }
}

function describeRepeatsOfAppend(context: ConformanceContext): void {
  it('STA-03 append, sent again, adds its messages again, together each time', async () => {
    const { clients } = context;
    const { conversations } = context.adapter;
    const sessionId = context.id();
    const messages = ['a', 'b'].map((content): NewMessage => ({ id: context.id(), role: 'user', content }));
    await conversations.append(sessionId, messages);
    await conversations.append(sessionId, messages);
    await Promise.all(
      [clients[0], clients[clients.length - 1]].map((client) => client.conversations.append(sessionId, messages)),
    );

    const log = await conversations.page(sessionId);
    expect(log.map(({ position, content }) => `${position}${content as string}`)).toEqual([
      '1a',
      '2b',
      '3a',
      '4b',
      '5a',
      '6b',
      '7a',
      '8b',
    ]);
  });
}

function describeRepeatsOfDocuments(context: ConformanceContext): void {
  const documentAt = async (value?: string) => {
    const { state } = context.adapter;
    const address = { namespace: context.id(), scope: '', sessionId: context.id(), key: 'key' };
    const stored = value === undefined ? null : await state.set(address, value, { ttlMs: HOUR });
    const look = async (): Promise<StateDocument | null> => {
      const document = await state.get(address);
      // Stores may count from any number, so compare the increase.
      return document && { ...document, version: document.version - (stored ?? document).version };
    };
    return { address, ifVersion: stored?.version ?? 0, look };
  };

  itMayBeSentTwice('set of a new document with ifVersion', context, async () => {
    const { address, look } = await documentAt();
    return { send: ({ state }) => state.set(address, 'new', { ifVersion: 0 }), again: () => null, look };
  });

  itMayBeSentTwice('set over a version', context, async () => {
    const { address, ifVersion, look } = await documentAt('old');
    return { send: ({ state }) => state.set(address, 'new', { ifVersion, ttlMs: HOUR }), again: () => null, look };
  });

  itMayBeSentTwice('delete', context, async () => {
    const { address, look } = await documentAt('old');
    return { send: ({ state }) => state.delete(address), again: () => false, look };
  });

  itMayBeSentTwice('ORC-03 get that counts as an access', context, async () => {
    const { address, look } = await documentAt('old');
    return {
      send: async ({ state }) => timeless(await state.get(address, { ttlMs: 2 * HOUR })),
      again: (first) => first,
      look: async () => timeless(await look()),
    };
  });

  itMayBeSentTwice('ORC-05 ORC-07 append', context, async () => {
    const { address, look } = await documentAt('old');
    const append: StateAppend = { id: context.id(), entries: [1, 2], ttlMs: HOUR };
    return { send: ({ state }) => state.append(address, append), again: (first) => first, look };
  });

  itMayBeSentTwice('ORC-05 append that creates the document', context, async () => {
    const { address, look } = await documentAt();
    const append: StateAppend = { id: context.id(), entries: [1], initial: [], ifVersion: 0 };
    return { send: ({ state }) => state.append(address, append), again: (first) => first, look };
  });

  itMayBeSentTwice('ORC-05 append to a version', context, async () => {
    const { address, ifVersion, look } = await documentAt('old');
    const append: StateAppend = { id: context.id(), entries: [1], ifVersion };
    return { send: ({ state }) => state.append(address, append), again: (first) => first, look };
  });

  itMayBeSentTwice('ORC-05 append that folds', context, async () => {
    const { address, look } = await documentAt('old');
    const ids = [context.id(), context.id()];
    for (const [n, id] of ids.entries()) await context.adapter.state.append(address, { id, entries: [n + 1] });
    const fold = { through: ids[1], value: 'old, 1, 2' };
    const append: StateAppend = { id: context.id(), entries: [3], fold };
    return { send: ({ state }) => state.append(address, append), again: (first) => first, look };
  });

  itMayBeSentTwice('ORC-03 append without entries', context, async () => {
    const { address, look } = await documentAt('old');
    const append: StateAppend = { id: context.id(), entries: [], ttlMs: HOUR };
    return {
      send: async ({ state }) => timeless(await state.append(address, append)),
      again: (first) => first,
      look: async () => timeless(await look()),
    };
  });

  itMayBeSentTwice('ORC-05 append without entries that creates the document', context, async () => {
    const { address, look } = await documentAt();
    const append: StateAppend = { id: context.id(), entries: [], initial: 'new' };
    return {
      send: async ({ state }) => timeless(await state.append(address, append)),
      again: (first) => first,
      look: async () => timeless(await look()),
    };
  });

  itMayBeSentTwice('ORC-05 append to a missing document', context, async () => {
    const { address, look } = await documentAt();
    const append: StateAppend = { id: context.id(), entries: [1] };
    return { send: ({ state }) => state.append(address, append), again: () => null, look };
  });

  it('ORC-13 evictIdle, sent again, keeps the requested number of documents', async () => {
    const { clients } = context;
    const { address } = await documentAt();
    const keys = ['a', 'b', 'c', 'd', 'e'];
    for (const key of keys) await context.adapter.state.set({ ...address, key }, key);
    const removed = await Promise.all(
      [clients[0], clients[clients.length - 1]].map(({ state }) => state.evictIdle(address.namespace, 2, 10)),
    );

    expect(removed[0] + removed[1]).toBe(3);
    expect(await context.adapter.state.evictIdle(address.namespace, 2, 10)).toBe(0);
    const left = await Promise.all(keys.map((key) => context.adapter.state.get({ ...address, key })));
    expect(left.filter((document) => document !== null)).toHaveLength(2);
  });

  it('set without ifVersion, sent again, is another write of the same value', async () => {
    const { state } = context.adapter;
    const { address } = await documentAt();
    const first = await state.set(address, 'new');
    const second = await state.set(address, 'new');

    expect([first, second]).toEqual([written('new'), written('new', versionAfter(first, 1))]);
    expect(await state.get(address)).toEqual(second);
  });
}

/** Removes the fields that depend on the time of the last call. */
function timeless(document: StateDocument | null): unknown {
  if (!document) return null;
  const { accessedAt: _, expiresAt: __, ...rest } = document;
  return rest;
}

function describeRepeatsOfLeases(context: ConformanceContext): void {
  const isFree = async (name: string): Promise<boolean> =>
    (await context.adapter.leases.acquire(name, 'another', HOUR)) !== null;

  itMayBeSentTwice('acquire', context, async () => {
    const name = context.id();
    return {
      send: ({ leases }) => leases.acquire(name, 'mine', HOUR),
      again: (first) => first,
      look: () => isFree(name),
    };
  });

  itMayBeSentTwice('renew', context, async () => {
    const name = context.id();
    const lease = await acquire(name);
    return { send: ({ leases }) => leases.renew(lease, HOUR), again: () => true, look: () => isFree(name) };
  });

  it('release, sent again, does not free the lease of a newer holder', async () => {
    const { leases } = context.adapter;
    const name = context.id();
    const lease = await acquire(name);
    await Promise.all([leases.release(lease), leases.release(lease)]);
    expect(await isFree(name)).toBe(true);
    await leases.release(lease);

    expect(await leases.acquire(name, 'third', HOUR)).toBeNull();
  });

  async function acquire(name: string) {
    const lease = await context.adapter.leases.acquire(name, 'mine', HOUR);
    if (!lease) throw new Error(`The lease ${name} should have been free.`);
    return lease;
  }
}
