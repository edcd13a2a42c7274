import { type StateAddress } from '../../ledger/state.store.js';
import { addressOf, appendOf, entriesOf } from './document-fixtures.js';
import { HOSTILE_NAMES, HOUR, PLENTY, SHORT, TICK } from './session-fixtures.js';
import { DESK, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

/** Tests of StateStore.evictIdle, which removes the least recently accessed documents of a namespace. */
export function describeDocumentEviction(context: ConformanceContext): void {
  describe('eviction of idle documents', () => {
    let namespace: string;

    beforeEach(() => {
      namespace = context.id();
    });

    it('ORC-13 keeps the last accessed documents of all scopes, sessions and keys, and removes idle ones first', async () => {
      const { state } = context.adapter;
      const sessionId = context.id();
      const all = await make([{}, { scope: 'scope' }, { key: 'key' }, { sessionId }, { sessionId, scope: 'scope' }]);

      expect(await state.evictIdle(namespace, 4, PLENTY)).toBe(1);
      expect(await left(all)).toEqual([1, 2, 3, 4]);
      expect(await state.evictIdle(namespace, 2, 1)).toBe(1);
      expect(await left(all)).toEqual([2, 3, 4]);
      expect(await state.evictIdle(namespace, 2, 1)).toBe(1);
      expect(await state.evictIdle(namespace, 2, 1)).toBe(0);
      expect(await left(all)).toEqual([3, 4]);
      expect(await state.evictIdle(namespace, 0, PLENTY)).toBe(2);
      expect(await left(all)).toEqual([]);
      expect(await state.evictIdle(namespace, 0, PLENTY)).toBe(0);
    });

    it('ORC-13 does not affect other namespaces', async () => {
      const { state } = context.adapter;
      const others = await Promise.all(
        HOSTILE_NAMES.map(async (name) => {
          const address = addressOf(context, { namespace: namespace + name.slice(0, 200), scope: namespace });
          await state.set(address, name);
          return address;
        }),
      );
      const [mine] = await make([{}]);

      expect(await state.evictIdle(namespace, 0, PLENTY)).toBe(1);
      expect(await state.get(mine)).toBeNull();
      for (const other of others) expect(await state.get(other)).not.toBeNull();
      expect(await state.evictIdle(others[0].namespace, 0, PLENTY)).toBe(1);
      expect(await state.get(others[0])).toBeNull();
      expect(await state.get(others[1])).not.toBeNull();
    });

    it('ORC-13 counts writes, appends and reads with an access as accesses, and other reads as none', async () => {
      const { state } = context.adapter;
      const all = await make([{}, {}, {}, {}, {}, {}]);
      const accesses: ((address: StateAddress) => Promise<unknown>)[] = [
        (address) => state.get(address),
        (address) => state.set(address, 'again'),
        (address) => state.get(address, {}),
        (address) => state.append(address, appendOf(context, ['more'])),
        (address) => state.append(address, appendOf(context, [], { ttlMs: HOUR })),
        (address) => state.append(address, appendOf(context, [], { ifVersion: 7 })),
      ];
      for (const [index, access] of accesses.entries()) {
        await access(all[index]);
        await context.elapse(TICK);
      }

      expect(await state.evictIdle(namespace, 4, 1)).toBe(1);
      expect(await left(all)).toEqual([1, 2, 3, 4, 5]);
      expect(await state.evictIdle(namespace, 4, 1)).toBe(1);
      expect(await left(all)).toEqual([1, 2, 3, 4]);
      expect(await state.evictIdle(namespace, 3, 1)).toBe(1);
      expect(await left(all)).toEqual([2, 3, 4]);
    });

    it('ORC-13 does not count a claim as an access', async () => {
      const { state } = context.adapter;
      const lane = await TestLane.open(context);
      const all = await make([{ sessionId: lane.sessionId }, {}]);
      await lane.run('hello', { documents: { [DESK]: [all[0]] } });

      expect(await state.evictIdle(namespace, 1, PLENTY)).toBe(1);
      expect(await left(all)).toEqual([1]);
    });

    it('ORC-13 removes nothing within the limit', async () => {
      const { state } = context.adapter;
      const all = await make([{}, {}]);
      expect(await state.evictIdle(namespace, 2, PLENTY)).toBe(0);
      expect(await state.evictIdle(namespace, 3, PLENTY)).toBe(0);
      expect(await state.evictIdle(namespace, 0, 0)).toBe(0);
      expect(await state.evictIdle(context.id(), 0, PLENTY)).toBe(0);
      expect(await left(all)).toEqual([0, 1]);
    });

    it('ORC-13 does not count expired documents', async () => {
      const { state } = context.adapter;
      const live = await make([{}, {}, {}]);
      const expired = await make([{}, {}]);
      for (const address of expired) await state.get(address, { ttlMs: SHORT });
      await context.elapse(SHORT + TICK);

      await state.evictIdle(namespace, 3, PLENTY);
      expect(await left(live)).toEqual([0, 1, 2]);
      await state.evictIdle(namespace, 2, PLENTY);
      expect(await left(live)).toEqual([1, 2]);
    });

    it.each<[string, (address: StateAddress) => Promise<unknown>]>([
      ['deleted', (address) => context.adapter.state.delete(address)],
      ['deleted with their session', ({ sessionId }) => context.sessions.delete(sessionId)],
      ['erased with their session', ({ sessionId }) => context.sessions.erase(sessionId)],
      ['deleted when they expired', expireAndDelete],
    ])('ORC-13 does not count documents that were %s', async (_, remove) => {
      const { state } = context.adapter;
      const all = await make([{}, {}, {}]);
      await remove(all[2]);

      expect(await state.evictIdle(namespace, 2, PLENTY)).toBe(0);
      expect(await left(all)).toEqual([0, 1]);
    });

    it('ORC-13 counts a document that is created again once', async () => {
      const { state } = context.adapter;
      const all = await make([{}, {}, {}]);
      await state.delete(all[0]);
      await state.set(all[0], 'anew');
      expect(await state.evictIdle(namespace, 3, PLENTY)).toBe(0);
      expect(await state.evictIdle(namespace, 1, PLENTY)).toBe(2);
      expect(await left(all)).toEqual([0]);

      await state.append(all[1], appendOf(context, [1], { initial: 'anew' }));
      expect(await state.get(all[1])).toMatchObject({ value: 'anew', batches: [{ entries: [1] }] });
      expect(await state.evictIdle(namespace, 2, PLENTY)).toBe(0);
    });

    it('ORC-13 keeps the given number of documents that were accessed at the same time', async () => {
      const { state } = context.adapter;
      const all = Array.from({ length: 20 }, (_, n) => addressOf(context, { namespace, key: `${n}` }));
      await Promise.all(all.map((address) => state.set(address, 'value')));

      expect(await state.evictIdle(namespace, 15, 2)).toBe(2);
      expect(await state.evictIdle(namespace, 15, PLENTY)).toBe(3);
      expect(await left(all)).toHaveLength(15);
    });

    it('ORC-13 does not affect the session and the other documents of an evicted document', async () => {
      const { state } = context.adapter;
      const lane = await TestLane.open(context);
      const other = addressOf(context, { sessionId: lane.sessionId });
      await state.set(other, 'kept');
      await make([{ sessionId: lane.sessionId }]);
      const before = await lane.snapshot();
      expect(await state.evictIdle(namespace, 0, PLENTY)).toBe(1);

      expect(await lane.snapshot()).toEqual(before);
      expect(await state.get(other)).toMatchObject({ value: 'kept' });
      await context.sessions.delete(lane.sessionId);
      expect(await state.get(other)).toBeNull();
    });

    it('ORC-13 never evicts a document that was just appended to', async () => {
      const [one, another] = [context.clients[0], context.clients[context.clients.length - 1]];
      for (let round = 0; round < 20; round += 1) {
        const [idle, recent] = await make([{}, {}], 'round');
        const append = appendOf(context, [round]);
        const evict = (): Promise<number> => another.state.evictIdle(namespace, 1, PLENTY);
        const early = round % 2 === 0 ? evict() : undefined;
        const [answer, removed] = await Promise.all([one.state.append(idle, append), early ?? evict()]);

        const document = await context.adapter.state.get(idle);
        expect(document).toEqual(answer);
        expect(entriesOf(document)).toEqual(answer ? [round] : []);
        expect(await left([idle, recent])).toHaveLength(2 - removed);
        await context.adapter.state.evictIdle(namespace, 0, PLENTY);
      }
    });

    /** Creates documents one after the other. */
    async function make(patches: readonly Partial<StateAddress>[], value = 'value'): Promise<StateAddress[]> {
      const made: StateAddress[] = [];
      for (const patch of patches) {
        const address = addressOf(context, { namespace, ...patch });
        await context.adapter.state.set(address, value);
        made.push(address);
        await context.elapse(TICK);
      }
      return made;
    }

    /** Returns the indices of the documents that exist. */
    async function left(addresses: readonly StateAddress[]): Promise<number[]> {
      const documents = await Promise.all(addresses.map((address) => context.adapter.state.get(address)));
      return documents.flatMap((document, index) => (document ? [index] : []));
    }

    async function expireAndDelete(address: StateAddress): Promise<void> {
      await context.adapter.state.get(address, { ttlMs: SHORT });
      await context.elapse(SHORT + TICK);
      await context.adapter.state.deleteExpired(PLENTY);
    }
  });
}
