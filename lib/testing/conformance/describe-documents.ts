import { type JsonValue } from '../../common/json.js';
import { type StateAddress, type StateDocument } from '../../ledger/state.store.js';
import { addressOf, anyTime, isAfter, versionAfter, written } from './document-fixtures.js';
import { HOSTILE_NAMES, HOUR, PLENTY, SHORT, TICK } from './session-fixtures.js';
import { type ConformanceContext } from './target.js';

/** The contract of StateStore. */
export function describeDocuments(context: ConformanceContext): void {
  describe('documents', () => {
    const at = (patch: Partial<StateAddress> = {}): StateAddress => addressOf(context, patch);
    const get = async (address: StateAddress): Promise<JsonValue | undefined> =>
      (await context.adapter.state.get(address))?.value;

    it('keeps a document with a version that every write counts', async () => {
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

    it('keeps null apart from no document, and every other JSON value as it is', async () => {
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

    it('tells addresses apart in every part', async () => {
      const address = at({ scope: 'a' });
      const others: StateAddress[] = [
        { ...address, namespace: context.id() },
        { ...address, scope: 'b' },
        { ...address, scope: '' },
        { ...address, sessionId: context.id() },
        { ...address, key: 'State' },
        // The same text when the parts are joined.
        { ...address, scope: 'a:state', key: '' },
      ];
      await context.adapter.state.set(address, 'mine');
      for (const other of others) expect(await context.adapter.state.get(other)).toBeNull();
      for (const other of others) await context.adapter.state.set(other, 'theirs');
      for (const other of others) await context.adapter.state.delete(other);
      expect(await get(address)).toBe('mine');
    });

    it('tells keys apart by every character', async () => {
      const address = at();
      for (const key of HOSTILE_NAMES) await context.adapter.state.set({ ...address, key }, key);
      for (const key of HOSTILE_NAMES) expect(await get({ ...address, key })).toBe(key);
    });

    it('copies what goes in and what comes out', async () => {
      const address = at();
      const given = { list: [{ n: 1 }] };
      const stored = await context.adapter.state.set(address, given);
      const read = await context.adapter.state.get(address);
      for (const value of [given, stored?.value, read?.value] as (typeof given)[]) value.list.push({ n: 2 });

      expect(await get(address)).toEqual({ list: [{ n: 1 }] });
    });

    it('writes over the expected version only', async () => {
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

    it('lets one of many concurrent writers have a version, and loses no count when they try again', async () => {
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

    it("forgets a document after its time to live, by the store's clock", async () => {
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

    it('keeps a document for years, and for ever when no time to live is given', async () => {
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

    it('keeps when it was made, and notes when it was written', async () => {
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

    it('makes one anew where one expired, when it is written', async () => {
      const { state } = context.adapter;
      const address = at();
      const expired = await state.set(address, 1, { ttlMs: SHORT });
      await context.elapse(SHORT + TICK);
      const anew = await state.set(address, 2);

      expect(anew).toEqual(written(2));
      expect(isAfter(anew?.createdAt, expired?.createdAt)).toBe(true);
    });

    it('ORC-03 a read that counts as an access moves when it was accessed and when it expires, and nothing else', async () => {
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

    it('ORC-03 a read that counts as an access gives a document an end, and takes it away', async () => {
      const { state } = context.adapter;
      // Long enough to be read once more on a busy machine.
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

    it('ORC-03 a read makes no document', async () => {
      const { state } = context.adapter;
      const address = at();
      expect(await state.get(address, { ttlMs: HOUR })).toBeNull();
      expect(await state.get(address, {})).toBeNull();
      expect(await state.get(address)).toBeNull();
      expect(await state.set(address, 'first', { ifVersion: 0 })).toEqual(written('first'));
    });

    it('ORC-03 reads that count as accesses undo no concurrent write', async () => {
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

    it('deletes a document, and says whether there was one', async () => {
      const { state } = context.adapter;
      const address = at();
      await state.set(address, 'x');
      expect(await state.delete(address)).toBe(true);
      expect(await state.get(address)).toBeNull();
      expect(await state.delete(address)).toBe(false);
    });

    it('removes expired documents, at most as many as asked for, and no others', async () => {
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

/** Milliseconds from its last access to its end. */
function lifeOf(document: StateDocument | null): number {
  return Date.parse(document?.expiresAt ?? '') - Date.parse(document?.accessedAt ?? '');
}
