import { type JsonValue } from '../../common/json.js';
import { type StateAddress, type StateAppend, type StateDocument, type StateStore } from '../../ledger/state.store.js';
import {
  addressOf,
  anyTime,
  anyVersion,
  appendOf,
  entriesOf,
  foldOf,
  isAfter,
  listOf,
  versionAfter,
  written,
} from './document-fixtures.js';
import { HOUR, lookalikeIds, PLENTY, SHORT, TICK } from './session-fixtures.js';
import { type ConformanceContext } from './target.js';

/** Tests of StateStore.append: batches, initial values and folds. */
export function describeDocumentAppends(context: ConformanceContext): void {
  describe('appends to documents', () => {
    const at = (patch: Partial<StateAddress> = {}): StateAddress => addressOf(context, patch);
    const of = (entries: JsonValue[], patch: Partial<StateAppend> = {}): StateAppend =>
      appendOf(context, entries, patch);

    it('ORC-05 adds batches in order, and counts each as a version', async () => {
      const { state } = context.adapter;
      const address = at();
      const made = await state.set(address, { n: 0 });
      await context.elapse(TICK);
      const [first, second] = [of([1, 'two']), of([[]])];
      const one = await state.append(address, first);
      await context.elapse(TICK);
      const both = await state.append(address, second);

      const batch = { id: first.id, at: one?.accessedAt ?? '', entries: [1, 'two'] };
      expect(one).toEqual({ ...made, batches: [batch], version: versionAfter(made, 1), accessedAt: anyTime() });
      expect(both).toEqual({
        ...one,
        batches: [batch, { id: second.id, at: both?.accessedAt, entries: [[]] }],
        version: versionAfter(made, 2),
        accessedAt: anyTime(),
      });
      expect(isAfter(one?.accessedAt, made?.accessedAt)).toBe(true);
      expect(isAfter(both?.accessedAt, one?.accessedAt)).toBe(true);
      expect(await state.get(address)).toEqual(both);
    });

    it('ORC-05 writes nothing to a missing document without an initial value', async () => {
      const { state } = context.adapter;
      const address = at();
      expect(await state.append(address, of([1]))).toBeNull();
      expect(await state.append(address, of([], { ifVersion: 0 }))).toBeNull();
      expect(await state.append(address, of([1], { initial: [], ifVersion: 1 }))).toBeNull();
      expect(await state.get(address)).toBeNull();
    });

    it.each<[string, JsonValue]>([
      ['an object', { list: [] }],
      ['null', null],
      ['false', false],
      ['an empty string', ''],
    ])('ORC-05 creates a missing document from %s', async (_, initial) => {
      const { state } = context.adapter;
      const [empty, filled] = [at(), at()];
      const made = await state.append(empty, of([], { initial }));
      expect(made).toEqual(written(initial));
      expect(made?.accessedAt).toBe(made?.createdAt);
      expect(await state.get(empty)).toEqual(made);

      const append = of([1], { initial, ifVersion: 0, ttlMs: HOUR });
      const document = await state.append(filled, append);
      const batches = [{ id: append.id, at: document?.createdAt, entries: [1] }];
      expect(document).toEqual({ ...written(initial), batches, expiresAt: anyTime() });
      expect(document?.accessedAt).toBe(document?.createdAt);
      expect(await state.get(filled)).toEqual(document);
      // The initial value applies only once.
      expect(await state.append(filled, of([2], { initial: 'another' }))).toMatchObject({
        value: initial,
        version: versionAfter(document, 1),
      });
    });

    it('ORC-05 counts an append without entries as an access only', async () => {
      const { state } = context.adapter;
      const address = at();
      await state.set(address, 'value');
      const before = await state.append(address, of([1]));
      await context.elapse(TICK);
      const append = of([], { ttlMs: HOUR });
      const after = await state.append(address, append);
      expect(after).toEqual({ ...before, accessedAt: anyTime(), expiresAt: anyTime() });
      expect(isAfter(after?.accessedAt, before?.accessedAt)).toBe(true);
      expect(await state.get(address)).toEqual(after);
      // It leaves no batch, so its id is not known.
      expect(await state.append(address, { ...append, entries: [2] })).toMatchObject({
        version: versionAfter(before, 1),
      });
    });

    it('ORC-05 changes the expiry of the document, or removes it', async () => {
      const { state } = context.adapter;
      const [ending, lasting] = [at(), at()];
      await state.set(ending, 'ending');
      await state.set(lasting, 'lasting', { ttlMs: SHORT });
      const document = await state.append(ending, of([1], { ttlMs: SHORT }));
      expect(Date.parse(document?.expiresAt ?? '') - Date.parse(document?.accessedAt ?? '')).toBe(SHORT);
      // On a slow machine it has already expired and is created again, also without an expiry.
      await state.append(lasting, of([1], { initial: 'lasting' }));
      await context.elapse(SHORT + TICK);
      await state.deleteExpired(PLENTY);

      expect(await state.get(ending)).toBeNull();
      expect(await state.append(ending, of([1]))).toBeNull();
      expect(
        await state.append(ending, of([1], { ifVersion: versionAfter(document, 0), initial: 'restarted' })),
      ).toBeNull();
      const restarted = await state.append(ending, of([2], { initial: 'restarted' }));
      expect(restarted).toEqual({ ...written('restarted'), batches: [expect.objectContaining({ entries: [2] })] });
      const kept = await state.get(lasting);
      expect(kept).not.toHaveProperty('expiresAt');
      expect(entriesOf(kept)).toEqual([1]);
    });

    it('STA-04 keeps the expiry of the document with keepExpiry', async () => {
      const { state } = context.adapter;
      const [ending, lasting, made] = [at(), at(), at()];
      const before = await state.set(ending, 'ending', { ttlMs: HOUR });
      await state.set(lasting, 'lasting');
      await context.elapse(TICK);
      const kept = { keepExpiry: true, ttlMs: SHORT };
      expect(await state.append(ending, of([1], kept))).toMatchObject({
        version: versionAfter(before, 1),
        expiresAt: before?.expiresAt,
      });
      expect(await state.append(ending, of([2], { keepExpiry: true }))).toMatchObject({ expiresAt: before?.expiresAt });
      expect(await state.append(lasting, of([1], kept))).not.toHaveProperty('expiresAt');
      expect(await state.append(made, of([1], { ...kept, initial: null }))).toMatchObject({ expiresAt: anyTime() });
      await context.elapse(SHORT + TICK);
      await state.deleteExpired(PLENTY);

      expect(entriesOf(await state.get(ending))).toEqual([1, 2]);
      expect(entriesOf(await state.get(lasting))).toEqual([1]);
      expect(await state.get(made)).toBeNull();
    });

    it('STA-04 removes the document immediately when its time to live is 0', async () => {
      const { state } = context.adapter;
      const address = at();
      await state.set(address, 'old');
      await state.append(address, of(['gone'], { ttlMs: 0 }));
      const restarted = await state.append(address, of([1], { initial: 'restarted', keepExpiry: true }));
      expect(restarted).toMatchObject({ value: 'restarted', batches: [{ entries: [1] }] });
      expect(restarted).not.toHaveProperty('expiresAt');
      expect(await state.get(address)).toEqual(restarted);
    });

    it('ORC-05 creates the document again if the stored one has expired', async () => {
      const { state } = context.adapter;
      const address = at();
      await state.set(address, 'old', { ttlMs: HOUR });
      const append = of([1], { ttlMs: SHORT });
      const expired = await state.append(address, append);
      await context.elapse(SHORT + TICK);
      const restarted = await state.append(address, {
        ...append,
        ttlMs: HOUR,
        initial: 'new',
        fold: foldOf(expired, 1, 0),
      });

      expect(restarted).toMatchObject({ value: 'new', batches: [{ id: append.id, entries: [1] }] });
      expect(isAfter(restarted?.createdAt, expired?.createdAt)).toBe(true);
      expect(await state.get(address)).toEqual(restarted);
    });

    it('ORC-07 adds a batch once, and changes nothing when it is sent again', async () => {
      const { state } = context.adapter;
      const address = at();
      const append = of(['once'], { initial: null, ttlMs: HOUR });
      await state.append(address, append);
      const both = await state.append(address, of(['twice'], { ttlMs: HOUR }));
      await context.elapse(TICK);
      const fold = foldOf(both, 1, 'folded');

      for (const again of [append, { ...append, entries: [], ifVersion: 7, fold }, { ...append, entries: ['other'] }]) {
        expect(await state.append(address, again)).toEqual(both);
        expect(await state.get(address)).toEqual(both);
      }
    });

    it('ORC-07 identifies a batch by its complete id, not by its entries', async () => {
      const { state } = context.adapter;
      const address = at();
      const ids = lookalikeIds(context.id());
      const mentioned = { id: ids[1], at: '', entries: [] };
      const made = await state.set(address, [{ batches: ids.map((id) => ({ id })) }]);
      await state.append(address, { id: ids[0], entries: [mentioned, `{"id":"${ids[2]}"}`, ids] });
      for (const id of ids.slice(1)) await state.append(address, { id, entries: [id] });

      const document = await state.get(address);
      expect(document?.batches.map(({ id }) => id)).toEqual(ids);
      expect(document?.version).toBe(versionAfter(made, ids.length));
    });

    it('ORC-05 appends to the expected version only', async () => {
      const { state } = context.adapter;
      const address = at();
      const first = await state.append(address, of([1], { initial: null, ifVersion: 0 }));
      await context.elapse(TICK);
      const fold = foldOf(first, 1, 1);
      for (const ifVersion of [0, versionAfter(first, 1)]) {
        expect(await state.append(address, of([2], { initial: null, ifVersion, ttlMs: HOUR, fold }))).toEqual(first);
        expect(await state.append(address, of([], { ifVersion, ttlMs: HOUR }))).toEqual(first);
      }
      expect(await state.get(address)).toEqual(first);
      const next = await state.append(address, of([2], { ifVersion: versionAfter(first, 0) }));
      expect(next?.version).toBe(versionAfter(first, 1));
    });

    it('ORC-05 set removes all batches, and continues to count versions', async () => {
      const { state } = context.adapter;
      const address = at();
      const first = await state.append(address, of([1], { initial: 'first' }));
      await state.append(address, of([2]));
      const second = written('second', versionAfter(first, 2));
      expect(await state.set(address, 'late', { ifVersion: versionAfter(first, 0) })).toBeNull();
      expect(await state.set(address, 'second', { ifVersion: versionAfter(first, 1) })).toEqual(second);
      expect(await state.get(address)).toEqual(second);
      expect(await state.append(address, of([3]))).toMatchObject({ value: 'second', version: versionAfter(first, 3) });
    });

    it('ORC-05 delete removes the batches', async () => {
      const { state } = context.adapter;
      const address = at();
      const append = of([1], { initial: [] });
      await state.append(address, append);
      expect(await state.delete(address)).toBe(true);
      expect(await state.get(address)).toBeNull();
      expect(await state.append(address, append)).toMatchObject({ value: [], batches: [{ id: append.id }] });
    });

    it('ORC-05 copies batches on write and on read', async () => {
      const { state } = context.adapter;
      const address = at();
      const initial = { list: [1] };
      const entry = { list: [1] };
      const append = of([entry], { initial });
      const stored = await state.append(address, append);
      const read = await state.get(address);
      for (const value of [initial, entry, stored?.value, read?.value, ...entriesOf(stored), ...entriesOf(read)]) {
        (value as typeof initial).list.push(2);
      }
      (append.entries as JsonValue[]).push('more');

      expect(await state.get(address)).toMatchObject({ value: { list: [1] }, batches: [{ entries: [{ list: [1] }] }] });
      const folding = { list: ['folded'] };
      const folded = await state.append(address, of([2], { fold: foldOf(read, 1, folding) }));
      for (const value of [folding, folded?.value]) (value as typeof folding).list.push('more');
      expect(await state.get(address)).toMatchObject({ value: { list: ['folded'] }, batches: [{ entries: [2] }] });
    });

    describe('folds', () => {
      let address: StateAddress;
      let before: StateDocument | null;

      beforeEach(async () => {
        address = at();
        for (const n of [1, 2, 3]) await context.adapter.state.append(address, of([n], { initial: [] }));
        before = await context.adapter.state.get(address);
        await context.elapse(TICK);
      });

      it.each([1, 2, 3])('ORC-05 folds the oldest %d batches into the value', async (batches) => {
        const { state } = context.adapter;
        const value = [1, 2, 3].slice(0, batches);
        const rest = (before?.batches ?? []).slice(batches);
        const folded = await state.append(address, of([], { fold: foldOf(before, batches, value) }));
        expect(folded).toEqual({ ...before, value, batches: rest, accessedAt: anyTime() });
        expect(await state.get(address)).toEqual(folded);

        const append = of([4], { ifVersion: versionAfter(before, 0) });
        const after = await state.append(address, append);
        const batch = { id: append.id, at: after?.accessedAt, entries: [4] };
        expect(after).toEqual({
          ...folded,
          batches: [...rest, batch],
          version: versionAfter(before, 1),
          accessedAt: anyTime(),
        });
      });

      it('ORC-05 folds and appends in one call', async () => {
        const { state } = context.adapter;
        const append = of([4], { fold: foldOf(before, 2, [1, 2]) });
        const after = await state.append(address, append);
        expect(after).toMatchObject({ value: [1, 2], version: versionAfter(before, 1), createdAt: before?.createdAt });
        expect(entriesOf(after)).toEqual([3, 4]);
        const next = await state.append(address, of([5], { fold: foldOf(after, 2, [1, 2, 3, 4]) }));
        expect(next).toMatchObject({ value: [1, 2, 3, 4], version: versionAfter(before, 2) });
        expect(entriesOf(next)).toEqual([5]);
        expect(await state.get(address)).toEqual(next);
      });

      it('ORC-05 folds to null', async () => {
        const { state } = context.adapter;
        const fold = foldOf(before, 3, null);
        expect(await state.append(address, of([], { fold }))).toMatchObject({
          value: null,
          batches: [],
          version: versionAfter(before, 0),
        });
      });

      it('ORC-05 skips a fold of a missing batch, and appends', async () => {
        const { state } = context.adapter;
        const append = of([4], { fold: { through: context.id(), value: 'wrong' }, ttlMs: HOUR });
        const after = await state.append(address, append);
        expect(after).toMatchObject({ value: [], version: versionAfter(before, 1) });
        expect(entriesOf(after)).toEqual([1, 2, 3, 4]);
        expect(await state.get(address)).toEqual(after);
      });

      it('ORC-05 skips a fold if another fold came first', async () => {
        const { state } = context.adapter;
        const fold = foldOf(before, 2, [1, 2]);
        await state.append(address, of([], { fold }));
        const again = await state.append(address, of([4], { fold }));
        expect(listOf(again)).toEqual([1, 2, 3, 4]);
        const rest = foldOf(again, 2, 'wrong');
        await state.set(address, []);
        expect(await state.append(address, of([5], { fold: rest }))).toMatchObject({ value: [] });
      });

      it('ORC-05 folds what another fold has left', async () => {
        const { state } = context.adapter;
        const later = foldOf(before, 2, [1, 2]);
        await state.append(address, of([], { fold: foldOf(before, 1, [1]) }));
        const after = await state.append(address, of([4], { fold: later }));
        expect(after).toMatchObject({ value: [1, 2], version: versionAfter(before, 1) });
        expect(entriesOf(after)).toEqual([3, 4]);
      });

      it('ORC-05 STA-23 restores nothing of a deleted document', async () => {
        const { state } = context.adapter;
        const late = foldOf(before, 2, 'old');
        await state.delete(address);
        for (const n of [7, 8, 9]) await state.append(address, of([n], { initial: [] }));
        expect(listOf(await state.append(address, of([10], { fold: late })))).toEqual([7, 8, 9, 10]);
      });

      it('ORC-07 forgets the id of a batch once it is folded', async () => {
        const { state } = context.adapter;
        const [first] = before?.batches ?? [];
        await state.append(address, of([], { fold: foldOf(before, 1, [1]) }));
        const again = await state.append(address, { id: first.id, entries: first.entries });
        expect(listOf(again)).toEqual([1, 2, 3, 1]);
        expect(again?.version).toBe(versionAfter(before, 1));
      });
    });

    describe('races', () => {
      const MANY = 50;
      const numbers = (count = MANY): number[] => Array.from({ length: count }, (_, n) => n);
      const stateOf = (n: number): StateStore => context.clients[n % context.clients.length].state;

      it('ORC-05 keeps all of many concurrent appends', async () => {
        const address = at();
        const made = await context.adapter.state.set(address, []);
        const answers = await Promise.all(numbers().map((n) => stateOf(n).append(address, of([n]))));

        const document = await context.adapter.state.get(address);
        expect(listOf(document).toSorted(byNumber)).toEqual(numbers());
        expect(document).toMatchObject({ version: versionAfter(made, MANY), createdAt: made?.createdAt });
        // Each append returns the document directly after it.
        expect(answers.map((answer) => answer?.version).toSorted(byNumber)).toEqual(
          numbers().map((n) => versionAfter(made, n + 1)),
        );
        for (const [n, answer] of answers.entries()) {
          expect(entriesOf(answer).at(-1)).toBe(n);
          expect(answer?.batches).toEqual(document?.batches.slice(0, answer?.batches.length));
        }
      });

      it('ORC-05 creates one document for many concurrent appends with an initial value', async () => {
        for (const round of numbers(5)) {
          const address = at({ key: `state ${round}` });
          const answers = await Promise.all(
            numbers(10).map((n) => stateOf(n).append(address, of([n], { initial: [] }))),
          );
          const document = await context.adapter.state.get(address);
          expect(listOf(document).toSorted(byNumber)).toEqual(numbers(10));
          const first = answers.find((answer) => answer?.batches.length === 1) ?? null;
          expect(document?.version).toBe(versionAfter(first, 9));
        }
      });

      it('ORC-05 lets exactly one of many concurrent appends create a document that each requires to be missing', async () => {
        const address = at();
        const answers = await Promise.all(
          numbers(10).map((n) => stateOf(n).append(address, of([n], { initial: [], ifVersion: 0 }))),
        );
        const document = await context.adapter.state.get(address);
        expect(document).toMatchObject({ version: anyVersion(), batches: [{ entries: [expect.any(Number)] }] });
        for (const answer of answers) expect(answer).toEqual(document);
      });

      it('ORC-05 keeps every entry once during concurrent folds', async () => {
        const address = at();
        const made = await context.adapter.state.set(address, []);
        const foldAndAppend = async (n: number): Promise<void> => {
          const read = await stateOf(n).get(address);
          const fold = foldOf(read, read?.batches.length ?? 0, listOf(read));
          await stateOf(n).append(address, of([n], { fold }));
        };
        await Promise.all(
          numbers(10).map(async (writer) => {
            for (const turn of numbers(5)) await foldAndAppend(writer * 5 + turn);
          }),
        );

        const document = await context.adapter.state.get(address);
        expect(listOf(document).toSorted(byNumber)).toEqual(numbers());
        expect(document?.version).toBe(versionAfter(made, MANY));
        expect(document?.batches.length).toBeLessThan(MANY);
      });

      it('ORC-05 counts concurrent writes and appends as versions, and keeps batches after the last write', async () => {
        const address = at();
        const made = await context.adapter.state.set(address, null);
        const answers = await Promise.all(
          numbers().map((n) => (n % 10 === 0 ? stateOf(n / 10).set(address, n) : stateOf(n).append(address, of([n])))),
        );
        const document = await context.adapter.state.get(address);
        expect(document?.version).toBe(versionAfter(made, MANY));
        const valueOf = (document?.version ?? 0) - (document?.batches.length ?? 0);
        const after = answers.flatMap((answer, n) => ((answer?.version ?? 0) > valueOf ? [n] : []));
        expect(entriesOf(document).toSorted(byNumber)).toEqual(after);
        expect(document?.value).toBe(answers.findIndex((answer) => answer?.version === valueOf));
      });

      it('ORC-05 leaves nothing of a session that is erased during appends', async () => {
        for (const round of numbers(10)) {
          const address = at();
          await context.adapter.state.set(address, []);
          const appends = numbers(4).map((n) =>
            stateOf(n)
              .append(address, of([n], { initial: [] }))
              .catch((refused: unknown) => expect(refused).toMatchObject({ code: 'SESSION_NOT_FOUND' })),
          );
          const erase = context.clients[round % context.clients.length].sessions as typeof context.sessions;
          await Promise.all([...appends, erase.erase(address.sessionId)]);
          expect(await context.adapter.state.get(address)).toBeNull();
        }
      });
    });
  });
}

/** Compares numbers for `toSorted`, which compares strings by default. */
function byNumber(a: unknown, b: unknown): number {
  return Number(a) - Number(b);
}
