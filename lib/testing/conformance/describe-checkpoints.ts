import { CheckpointConflictError } from '../../ledger/checkpoint.errors.js';
import { type KeepCheckpoints } from '../../ledger/checkpoint.store.js';
import { type Checkpoint, type NewCheckpoint } from '../../ledger/checkpoint.js';
import { type ConformanceContext } from './target.js';

/** Tests of CheckpointStore (BOT-20, BOT-21). */
export function describeCheckpoints(context: ConformanceContext): void {
  describe('checkpoints', () => {
    const checkpoint = (patch: Partial<NewCheckpoint> = {}): NewCheckpoint => ({
      orchestrator: context.id(),
      sessionId: context.id(),
      turnIndex: 0,
      state: {},
      lastRoute: [],
      signature: 'signature',
      version: '1',
      summarizedThrough: 0,
      ...patch,
    });

    it('BOT-20 stores a checkpoint unchanged, with the time it was saved', async () => {
      const { checkpoints } = context.adapter;
      const first = checkpoint({ state: { order: { id: 7, note: 'NUL \u0000, lone \ud83d surrogate, 👩‍👩‍👧‍👦' } } });
      const second = checkpoint({
        ...first,
        turnIndex: 1,
        lastRoute: ['lookup', 'refund'],
        summarizedThrough: 4,
        turnId: context.id(),
        parent: 0,
      });
      const saved = [await checkpoints.append(first, 'all'), await checkpoints.append(second, 'all')];

      expect(saved).toEqual([
        { ...first, savedAt: saved[0].savedAt },
        { ...second, savedAt: saved[1].savedAt },
      ]);
      expect(saved[0].savedAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      expect(saved[0]).not.toHaveProperty('turnId');
      expect(saved[0]).not.toHaveProperty('parent');
      expect(saved[0]).not.toHaveProperty('undone');
      expect(saved[0]).not.toHaveProperty('documents');
      expect(await load(first)).toEqual(saved[1]);
      expect(await load(first, 0)).toEqual(saved[0]);
      expect(await load(first, 1)).toEqual(saved[1]);
      expect(await load(first, 2)).toBeNull();
      expect(await load(checkpoint())).toBeNull();
    });

    it('BOT-25 FIX-17 stores the undone turns, the documents and the intents of a checkpoint', async () => {
      const name = { namespace: 'notes', scope: '', key: 'a' };
      const value = { list: ['NUL \u0000, lone \ud83d surrogate', { deep: [null, 1.5] }] };
      const both = checkpoint({
        undone: [
          { from: 3, through: 3 },
          { from: 12, through: 900 },
        ],
        documents: [{ name, value }],
      });
      const undone = checkpoint({ undone: [] });
      const documents = checkpoint({ documents: [{ name, value: null }] });
      const intents = checkpoint({ intents: ['lookup', 'zwölf \ud83d'] });
      for (const given of [both, undone, documents, intents]) {
        const saved = await append(given);

        expect(saved).toEqual({ ...given, savedAt: saved.savedAt });
        expect(await load(given)).toEqual(saved);
        expect(await history(given)).toEqual([saved]);
      }
    });

    it('BOT-20 rejects an index that already exists, and overwrites nothing', async () => {
      const first = checkpoint({ state: { mine: true } });
      const stored = await context.adapter.checkpoints.append(first, 'all');
      const error = await context.adapter.checkpoints
        .append({ ...first, state: { theirs: true } }, 'all')
        .catch((reason: unknown) => reason);

      expect(error).toBeInstanceOf(CheckpointConflictError);
      expect(error).toMatchObject({
        orchestrator: first.orchestrator,
        sessionId: first.sessionId,
        turnIndex: 0,
        code: 'CHECKPOINT_CONFLICT',
      });
      expect(await history(first)).toEqual([stored]);
    });

    it('BOT-20 rejects an index that leaves a gap', async () => {
      const first = checkpoint();
      await expect(append({ ...first, turnIndex: 1 })).rejects.toBeInstanceOf(CheckpointConflictError);
      await append(first);
      await expect(append({ ...first, turnIndex: 2 })).rejects.toBeInstanceOf(CheckpointConflictError);
      expect(await history(first)).toHaveLength(1);
    });

    it('BOT-20 accepts an index from exactly one of many concurrent writers', async () => {
      const first = checkpoint();
      const results = await Promise.allSettled(
        Array.from({ length: 20 }, (_, writer) => append({ ...first, state: { writer } })),
      );
      const won = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
      const lost = results.flatMap((result): unknown[] => (result.status === 'rejected' ? [result.reason] : []));

      expect(won).toHaveLength(1);
      expect(lost.every((reason) => reason instanceof CheckpointConflictError)).toBe(true);
      expect(await history(first)).toEqual(won);
    });

    it('BOT-20 numbers checkpoints per orchestrator and session', async () => {
      const first = checkpoint();
      const others = [
        { ...first, orchestrator: context.id() },
        { ...first, sessionId: context.id() },
        { ...first, orchestrator: first.orchestrator.toUpperCase() },
      ];
      for (const each of [first, ...others]) await appendMany(each, 2);
      await context.adapter.checkpoints.delete(first.orchestrator, first.sessionId);

      expect(await history(first)).toEqual([]);
      for (const other of others) expect(await history(other)).toHaveLength(2);
    });

    it('BOT-20 copies checkpoints on write and on read', async () => {
      const given = checkpoint({ state: { list: [1] }, lastRoute: ['lookup'] });
      const handedOut = [given, await append(given), await load(given), ...(await history(given))];
      for (const each of handedOut) {
        (each?.state.list as number[]).push(2);
        (each?.lastRoute as string[]).push('more');
      }
      expect(await load(given)).toMatchObject({ state: { list: [1] }, lastRoute: ['lookup'] });
    });

    it('BOT-20 pages through the history, latest first', async () => {
      const { checkpoints } = context.adapter;
      const first = checkpoint();
      await appendMany(first, 7);
      const page = async (before?: number): Promise<number[]> =>
        indices(
          await checkpoints.history(first.orchestrator, first.sessionId, {
            limit: 3,
            ...(before === undefined ? {} : { before }),
          }),
        );

      expect(await page()).toEqual([6, 5, 4]);
      expect(await page(4)).toEqual([3, 2, 1]);
      expect(await page(1)).toEqual([0]);
      expect(await page(0)).toEqual([]);
      expect(indices(await history(first))).toEqual([6, 5, 4, 3, 2, 1, 0]);
    });

    it('BOT-20 returns 50 history entries by default', async () => {
      const first = checkpoint();
      await appendMany(first, 52);
      expect(await history(first)).toHaveLength(50);
    });

    it('BOT-20 lists the sessions of an orchestrator by a literal prefix', async () => {
      const { checkpoints } = context.adapter;
      const orchestrator = context.id();
      const name = context.id();
      const ids = ['', '-b', '_', '_a', '.a', '/child', '~', 'A', 'a', 'ab'].map((tail) => `${name}${tail}`);
      const foreign = checkpoint({ sessionId: `${name}_foreign` });
      for (const sessionId of ids) await appendMany(checkpoint({ orchestrator, sessionId }), 2);
      await append(foreign);
      await append(checkpoint({ orchestrator, sessionId: context.id() }));
      const sorted = [...ids].sort();

      expect(await checkpoints.list(orchestrator, { prefix: name })).toEqual(sorted);
      expect(await checkpoints.list(orchestrator, { prefix: `${name}_` })).toEqual([`${name}_`, `${name}_a`]);
      expect(await checkpoints.list(orchestrator, { prefix: `${name}a` })).toEqual([`${name}a`, `${name}ab`]);
      expect(await checkpoints.list(orchestrator, { prefix: `${name}%` })).toEqual([]);
      expect(await checkpoints.list(orchestrator)).toHaveLength(ids.length + 1);
      expect(await checkpoints.list(orchestrator, { prefix: name, limit: 4 })).toEqual(sorted.slice(0, 4));
      expect(await checkpoints.list(orchestrator, { prefix: name, limit: 4, after: sorted[3] })).toEqual(
        sorted.slice(4, 8),
      );
      expect(await checkpoints.list(context.id())).toEqual([]);
    });

    it('BOT-20 deletes the checkpoints of a session, and numbers new ones from 0', async () => {
      const first = checkpoint();
      await appendMany(first, 3);
      await context.adapter.checkpoints.delete(first.orchestrator, first.sessionId);
      await context.adapter.checkpoints.delete(first.orchestrator, first.sessionId);

      expect(await load(first)).toBeNull();
      expect(await context.adapter.checkpoints.list(first.orchestrator)).toEqual([]);
      expect(await append(first)).toMatchObject({ turnIndex: 0 });
    });

    it('BOT-21 keeps only the latest checkpoints', async () => {
      const first = checkpoint();
      for (let turnIndex = 0; turnIndex < 8; turnIndex += 1) {
        await append({ ...first, turnIndex }, 3);
        expect(await history(first)).toHaveLength(Math.min(turnIndex + 1, 3));
      }
      expect(indices(await history(first))).toEqual([7, 6, 5]);
      expect(await load(first, 4)).toBeNull();
      expect(await load(first, 5)).toMatchObject({ turnIndex: 5 });
    });

    it('BOT-21 applies the limit of the current append, whatever the earlier limits were', async () => {
      const first = checkpoint();
      await appendMany(first, 6);
      await append({ ...first, turnIndex: 6 }, 2);
      expect(indices(await history(first))).toEqual([6, 5]);
      await append({ ...first, turnIndex: 7 }, 1);
      expect(indices(await history(first))).toEqual([7]);
      await append({ ...first, turnIndex: 8 }, 'all');
      await append({ ...first, turnIndex: 9 }, 'all');
      expect(indices(await history(first))).toEqual([9, 8, 7]);
    });

    it('BOT-21 prunes nothing when an append is rejected', async () => {
      const first = checkpoint();
      await appendMany(first, 4);
      await expect(append({ ...first, turnIndex: 3 }, 1)).rejects.toBeInstanceOf(CheckpointConflictError);
      expect(await history(first)).toHaveLength(4);
    });

    it('BOT-21 prunes to the latest, and returns how many it removed', async () => {
      const { checkpoints } = context.adapter;
      const first = checkpoint();
      await appendMany(first, 6);

      expect(await checkpoints.prune(first.orchestrator, first.sessionId, 10)).toBe(0);
      expect(await checkpoints.prune(first.orchestrator, first.sessionId, 2)).toBe(4);
      expect(await checkpoints.prune(first.orchestrator, first.sessionId, 2)).toBe(0);
      expect(indices(await history(first))).toEqual([5, 4]);
      expect(await append({ ...first, turnIndex: 6 })).toMatchObject({ turnIndex: 6 });
      expect(await checkpoints.prune(context.id(), first.sessionId, 1)).toBe(0);
    });

    function append(next: NewCheckpoint, keep: KeepCheckpoints = 'all'): Promise<Checkpoint> {
      return context.adapter.checkpoints.append(next, keep);
    }

    async function appendMany(first: NewCheckpoint, count: number): Promise<void> {
      for (let turnIndex = 0; turnIndex < count; turnIndex += 1) await append({ ...first, turnIndex });
    }

    function load({ orchestrator, sessionId }: NewCheckpoint, turnIndex?: number): Promise<Checkpoint | null> {
      return context.adapter.checkpoints.load(orchestrator, sessionId, turnIndex);
    }

    function history({ orchestrator, sessionId }: NewCheckpoint): Promise<Checkpoint[]> {
      return context.adapter.checkpoints.history(orchestrator, sessionId);
    }
  });
}

function indices(checkpoints: readonly Checkpoint[]): number[] {
  return checkpoints.map(({ turnIndex }) => turnIndex);
}
