import { type JsonValue } from '../../common/json.js';
import { type StateAddress } from '../../state/state.store.js';
import { HOSTILE_NAMES, HOUR, PLENTY, SHORT, TICK } from './session-fixtures.js';
import { type ConformanceContext } from './target.js';

/** The contract of StateStore. */
export function describeDocuments(context: ConformanceContext): void {
  describe('documents', () => {
    const at = (patch: Partial<StateAddress> = {}): StateAddress => ({
      namespace: context.id(),
      scope: '',
      sessionId: context.id(),
      key: 'state',
      ...patch,
    });
    const get = async (address: StateAddress): Promise<JsonValue | undefined> =>
      (await context.adapter.state.get(address))?.value;

    it('keeps a document with a version that every write counts', async () => {
      const { state } = context.adapter;
      const address = at();
      expect(await state.get(address)).toBeNull();
      expect(await state.set(address, { a: [1, null, 'x'] })).toEqual({ value: { a: [1, null, 'x'] }, version: 1 });
      expect(await state.get(address)).toEqual({ value: { a: [1, null, 'x'] }, version: 1 });
      expect(await state.set(address, 'text')).toEqual({ value: 'text', version: 2 });
      expect(await state.get(address)).toEqual({ value: 'text', version: 2 });
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
        expect(await context.adapter.state.get(address)).toEqual({ value, version: 1 });
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
      const written = await context.adapter.state.set(address, given);
      const read = await context.adapter.state.get(address);
      for (const value of [given, written?.value, read?.value] as (typeof given)[]) value.list.push({ n: 2 });

      expect(await get(address)).toEqual({ list: [{ n: 1 }] });
    });

    it('writes over the expected version only', async () => {
      const { state } = context.adapter;
      const address = at();
      expect(await state.set(address, 'too early', { ifVersion: 1 })).toBeNull();
      expect(await state.get(address)).toBeNull();
      expect(await state.set(address, 'first', { ifVersion: 0 })).toEqual({ value: 'first', version: 1 });
      expect(await state.set(address, 'late', { ifVersion: 0 })).toBeNull();
      expect(await state.set(address, 'second', { ifVersion: 1 })).toEqual({ value: 'second', version: 2 });
      expect(await state.set(address, 'late', { ifVersion: 1 })).toBeNull();
      expect(await state.get(address)).toEqual({ value: 'second', version: 2 });
    });

    it('lets one of many concurrent writers have a version, and loses no count when they try again', async () => {
      const { state } = context.adapter;
      const address = at();
      const creates = await Promise.all(Array.from({ length: 20 }, () => state.set(address, 0, { ifVersion: 0 })));
      expect(creates.filter((document) => document !== null)).toHaveLength(1);

      const increment = async (): Promise<void> => {
        const document = await state.get(address);
        if (!document) throw new Error('The document is gone.');
        const written = await state.set(address, Number(document.value) + 1, { ifVersion: document.version });
        if (!written) await increment();
      };
      await Promise.all(Array.from({ length: 20 }, increment));
      expect(await state.get(address)).toEqual({ value: 20, version: 21 });
    });

    it("forgets a document after its time to live, by the store's clock", async () => {
      const { state } = context.adapter;
      const address = at();
      const written = await state.set(address, 'short', { ttlMs: SHORT });
      expect(written).toEqual({ value: 'short', version: 1, expiresAt: written?.expiresAt });
      expect(written?.expiresAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      await context.elapse(SHORT + TICK);

      expect(await state.get(address)).toBeNull();
      expect(await state.extend(address, HOUR)).toBe(false);
      expect(await state.delete(address)).toBe(false);
      expect(await state.set(address, 'anew', { ifVersion: 1 })).toBeNull();
      expect(await state.set(address, 'anew', { ifVersion: 0 })).toEqual({ value: 'anew', version: 1 });
    });

    it('keeps a document for years, and for ever when no time to live is given', async () => {
      const { state } = context.adapter;
      const [years, ever] = [at(), at()];
      const ttlMs = 10 * 365 * 24 * HOUR;
      const before = await state.set(years, 'years', { ttlMs });
      await state.set(ever, 'short', { ttlMs: SHORT });
      await state.set(ever, 'ever');
      await context.elapse(SHORT + TICK);

      expect(await state.get(years)).toEqual(before);
      expect(await state.get(ever)).toEqual({ value: 'ever', version: 2 });
    });

    it('extends the time to live without touching value or version', async () => {
      const { state } = context.adapter;
      const address = at();
      const before = await state.set(address, 'kept', { ttlMs: HOUR });
      expect(await state.extend(address, 3 * HOUR)).toBe(true);
      const after = await state.get(address);

      expect(after).toEqual({ value: 'kept', version: 1, expiresAt: after?.expiresAt });
      const gained = Date.parse(after?.expiresAt ?? '') - Date.parse(before?.expiresAt ?? '');
      expect(gained).toBeGreaterThanOrEqual(2 * HOUR);
      expect(await state.extend(address, SHORT)).toBe(true);
      await context.elapse(SHORT + TICK);
      expect(await state.get(address)).toBeNull();
      expect(await state.extend(at(), HOUR)).toBe(false);
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
