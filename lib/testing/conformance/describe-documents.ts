import { type JsonValue } from '../../common/json.js';
import { type StateAddress, type StateDocument } from '../../ledger/state.store.js';
import { addressOf, anyTime, isAfter, versionAfter, written } from './document-fixtures.js';
import { HOSTILE_NAMES, HOUR, PLENTY, SHORT, TICK } from './session-fixtures.js';
import { type ConformanceContext } from './target.js';

/** Tests of StateStore. */
export function describeDocuments(context: ConformanceContext): void {
  describe('documents', () => {
    const at = (patch: Partial<StateAddress> = {}): StateAddress => addressOf(context, patch);
    const get = async (address: StateAddress): Promise<JsonValue | undefined> =>
      (await context.adapter.state.get(address))?.value;

    it('stores a document with a version that every write increments', async () => {
      const { state } = context.adapter;
      const address = at();
      expect(await state.get(address)).toBeNull();
      const first = await state.set(address, { a: [1, null, 'x'] });
      expect(first).toEqual(written({ a: [1, null, 'x'] }));
      expect(Number.isSafeInteger(first?.version)).toBe(true);
      expect(first?.version).toBeGreaterThanOrEqual(1);
      expect(await state.get(address)).toEqual(first);
      expect(await state.set(address, 'text')).toEqual(written('text', versionAfter(first, 1)));
      expect(await state.get(address)).toEqual(written('text', versionAfter(first, 1)));
    });

    it('distinguishes null from a missing document, and returns every other JSON value unchanged', async () => {
      const values: JsonValue[] = [
        null,
        false,
        0,
        '',
        [],
        {},
        1e-7,
        Number.MAX_SAFE_INTEGER,
        'NUL \u0000, lone \ud83d surrogate',
        Object.fromEntries(HOSTILE_NAMES.filter((name) => name !== '__proto__').map((name) => [name, [name]])),
      ];
      for (const value of values) {
        const address = at();
        await context.adapter.state.set(address, value);
        expect(await context.adapter.state.get(address)).toEqual(written(value));
      }
    });

    it('distinguishes addresses by every part', async () => {
      const address = at({ scope: 'a' });
      const others: StateAddress[] = [
        { ...address, namespace: context.id() },
        { ...address, scope: 'b' },
        { ...address, scope: '' },
        { ...address, sessionId: context.id() },
        { ...address, key: 'State' },
        // The joined parts are the same string.
        { ...address, scope: 'a:state', key: '' },
      ];
      await context.adapter.state.set(address, 'mine');
      for (const other of others) expect(await context.adapter.state.get(other)).toBeNull();
      for (const other of others) await context.adapter.state.set(other, 'theirs');
      for (const other of others) await context.adapter.state.delete(other);
      expect(await get(address)).toBe('mine');
    });

    it('distinguishes keys by every character', async () => {
      const address = at();
      for (const key of HOSTILE_NAMES) await context.adapter.state.set({ ...address, key }, key);
      for (const key of HOSTILE_NAMES) expect(await get({ ...address, key })).toBe(key);
    });

    it('copies documents on write and on read', async () => {
      const address = at();
      const given = { list: [{ n: 1 }] };
      const stored = await context.adapter.state.set(address, given);
      const read = await context.adapter.state.get(address);
      for (const value of [given, stored?.value, read?.value] as (typeof given)[]) value.list.push({ n: 2 });

      expect(await get(address)).toEqual({ list: [{ n: 1 }] });
    });

    it('overwrites the expected version only', async () => {
      const { state } = context.adapter;
      const address = at();
      expect(await state.set(address, 'too early', { ifVersion: 1 })).toBeNull();
      expect(await state.get(address)).toBeNull();
      const first = await state.set(address, 'first', { ifVersion: 0 });
      expect(first).toEqual(written('first'));
      expect(await state.set(address, 'late', { ifVersion: 0 })).toBeNull();
      const over = { ifVersion: versionAfter(first, 0) };
      const second = written('second', versionAfter(first, 1));
      expect(await state.set(address, 'second', over)).toEqual(second);
      expect(await state.set(address, 'late', over)).toBeNull();
      expect(await state.get(address)).toEqual(second);
    });

    it('accepts exactly one of many concurrent writers per version, and loses no count when they retry', async () => {
      const { state } = context.adapter;
      const address = at();
      const creates = await Promise.all(Array.from({ length: 20 }, () => state.set(address, 0, { ifVersion: 0 })));
      const [created, ...others] = creates.filter((document) => document !== null);
      expect(others).toEqual([]);

      const increment = async (): Promise<void> => {
        const document = await state.get(address);
        if (!document) throw new Error('The document is gone.');
        const written = await state.set(address, Number(document.value) + 1, { ifVersion: document.version });
        if (!written) await increment();
      };
      await Promise.all(Array.from({ length: 20 }, increment));
      expect(await state.get(address)).toEqual(written(20, versionAfter(created, 20)));
    });

    it("expires a document after its time to live, by the store's clock", async () => {
      const { state } = context.adapter;
      const address = at();
      const short = await state.set(address, 'short', { ttlMs: SHORT });
      expect(short).toEqual({ ...written('short'), expiresAt: anyTime() });
      expect(lifeOf(short)).toBe(SHORT);
      await context.elapse(SHORT + TICK);

      expect(await state.get(address)).toBeNull();
      expect(await state.get(address, { ttlMs: HOUR })).toBeNull();
      expect(await state.get(address)).toBeNull();
      expect(await state.delete(address)).toBe(false);
      expect(await state.set(address, 'anew', { ifVersion: versionAfter(short, 0) })).toBeNull();
      expect(await state.set(address, 'anew', { ifVersion: 0 })).toEqual(written('anew'));
    });

    it('keeps a document for years, and permanently without a time to live', async () => {
      const { state } = context.adapter;
      const [years, ever] = [at(), at()];
      const ttlMs = 10 * 365 * 24 * HOUR;
      const before = await state.set(years, 'years', { ttlMs });
      await state.set(ever, 'short', { ttlMs: SHORT });
      const last = await state.set(ever, 'ever');
      expect(last).toMatchObject({ value: 'ever' });
      expect(last).not.toHaveProperty('expiresAt');
      await context.elapse(SHORT + TICK);

      expect(await state.get(years)).toEqual(before);
      expect(await state.get(ever)).toEqual(last);
    });

    it('keeps the creation time, and updates the write time', async () => {
      const { state } = context.adapter;
      const address = at();
      const first = await state.set(address, 1, { ttlMs: HOUR });
      expect(first?.accessedAt).toBe(first?.createdAt);
      await context.elapse(TICK);
      const second = await state.set(address, 2);
      expect(second?.createdAt).toBe(first?.createdAt);
      expect(isAfter(second?.accessedAt, first?.accessedAt)).toBe(true);
      expect(await state.get(address)).toEqual(second);

      await state.delete(address);
      const anew = await state.set(address, 3);
      expect(isAfter(anew?.createdAt, first?.createdAt)).toBe(true);
      expect(anew?.accessedAt).toBe(anew?.createdAt);
    });

    it('creates a new document when a write finds an expired one', async () => {
      const { state } = context.adapter;
      const address = at();
      const expired = await state.set(address, 1, { ttlMs: SHORT });
      await context.elapse(SHORT + TICK);
      const anew = await state.set(address, 2);

      expect(anew).toEqual(written(2));
      expect(isAfter(anew?.createdAt, expired?.createdAt)).toBe(true);
    });

    it('ORC-03 updates only the access time and the expiry on a read that counts as an access', async () => {
      const { state } = context.adapter;
      const address = at();
      const before = await state.set(address, 'kept', { ttlMs: HOUR });
      await context.elapse(TICK);
      expect(await state.get(address)).toEqual(before);
      const after = await state.get(address, { ttlMs: 3 * HOUR });

      expect(after).toEqual({ ...before, accessedAt: anyTime(), expiresAt: anyTime() });
      expect(isAfter(after?.accessedAt, before?.accessedAt)).toBe(true);
      expect(lifeOf(after)).toBe(3 * HOUR);
      expect(await state.get(address)).toEqual(after);
    });

    it('ORC-03 sets and removes the expiry of a document on a read that counts as an access', async () => {
      const { state } = context.adapter;
      // Long enough for one more read on a busy machine.
      const LONGER = 10 * SHORT;
      const [ending, lasting] = [at(), at()];
      await state.set(ending, 'ending');
      await state.set(lasting, 'lasting', { ttlMs: LONGER });
      expect(lifeOf(await state.get(ending, { ttlMs: SHORT }))).toBe(SHORT);
      expect(await state.get(lasting, {})).toEqual(written('lasting'));
      await context.elapse(LONGER + TICK);
      await state.deleteExpired(PLENTY);

      expect(await state.get(ending)).toBeNull();
      expect(await state.get(lasting)).toEqual(written('lasting'));
    });

    it('ORC-03 creates no document on a read', async () => {
      const { state } = context.adapter;
      const address = at();
      expect(await state.get(address, { ttlMs: HOUR })).toBeNull();
      expect(await state.get(address, {})).toBeNull();
      expect(await state.get(address)).toBeNull();
      expect(await state.set(address, 'first', { ifVersion: 0 })).toEqual(written('first'));
    });

    it('ORC-03 keeps concurrent writes during reads that count as accesses', async () => {
      const { clients } = context;
      const address = at();
      const first = await context.adapter.state.set(address, 0);
      await Promise.all(
        Array.from({ length: 20 }, (_, n) => {
          const { state } = clients[n % clients.length];
          return n % 4 < 2 ? state.set(address, n) : state.get(address, { ttlMs: HOUR });
        }),
      );

      expect((await context.adapter.state.get(address))?.version).toBe(versionAfter(first, 10));
    });

    it('deletes a document, and returns whether it existed', async () => {
      const { state } = context.adapter;
      const address = at();
      await state.set(address, 'x');
      expect(await state.delete(address)).toBe(true);
      expect(await state.get(address)).toBeNull();
      expect(await state.delete(address)).toBe(false);
    });

    it('removes expired documents only, at most as many as requested', async () => {
      const { state } = context.adapter;
      await state.deleteExpired(PLENTY);
      const [live, ever] = [at(), at()];
      await state.set(live, 'live', { ttlMs: HOUR });
      await state.set(ever, 'ever');
      for (let n = 0; n < 5; n += 1) await state.set(at(), n, { ttlMs: SHORT });
      await context.elapse(SHORT + TICK);

      expect(await state.deleteExpired(3)).toBe(3);
      expect(await state.deleteExpired(3)).toBe(2);
      expect(await state.deleteExpired(3)).toBe(0);
      expect(await get(live)).toBe('live');
      expect(await get(ever)).toBe('ever');
    });
  });
}

/** Returns the milliseconds from the last access to the expiry. */
function lifeOf(document: StateDocument | null): number {
  return Date.parse(document?.expiresAt ?? '') - Date.parse(document?.accessedAt ?? '');
}
