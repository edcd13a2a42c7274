import { type StateAddress, type StateDocument } from '../../ledger/state.store.js';
import { addressOf, appendOf } from './document-fixtures.js';
import { draft, PLENTY, RULES, SHORT, TICK } from './session-fixtures.js';
import { type ConformanceContext } from './target.js';

const ROUNDS = 10;

/** Tests of the versions of a document that is deleted and created again (FIX-40). */
export function describeDocumentVersions(context: ConformanceContext): void {
  describe('versions of documents', () => {
    const write = (address: StateAddress, value: string): Promise<StateDocument | null> =>
      context.adapter.state.set(address, value);
    const versionOf = (document: StateDocument | null): number => document?.version ?? NaN;

    const ends: Record<string, (address: StateAddress) => Promise<unknown>> = {
      'a delete': (address) => context.adapter.state.delete(address),
      'an append that lets it expire': (address) =>
        context.adapter.state.append(address, appendOf(context, [], { ttlMs: 0 })),
      'an eviction': ({ namespace }) => context.adapter.state.evictIdle(namespace, 0, PLENTY),
      'a reset': ({ namespace, sessionId }) =>
        context.adapter.state.reset({ sessionId, namespaces: [namespace], epoch: context.id() }),
      'the delete of its session': ({ sessionId }) => context.sessions.delete(sessionId),
      'its expiry and a sweep': async (address) => {
        await context.adapter.state.get(address, { ttlMs: SHORT });
        await context.elapse(SHORT + TICK);
        await context.adapter.state.deleteExpired(PLENTY);
      },
    };

    it.each(Object.entries(ends))(
      'FIX-40 never reuses a version for a document that is created after %s',
      async (_, end) => {
        const { state } = context.adapter;
        const address = addressOf(context);
        for (let round = 0; round < ROUNDS; round += 1) {
          await context.sessions.create(draft(context, { id: address.sessionId }), RULES).catch(() => undefined);
          const versions = [versionOf(await write(address, 'ann')), versionOf(await write(address, 'ann'))];
          await end(address);
          const again = [versionOf(await write(address, 'bob')), versionOf(await write(address, 'bob'))];

          expect(again[0]).toBeGreaterThan(versions[1]);
          for (const ifVersion of versions) {
            expect(await state.set(address, 'stale', { ifVersion })).toBeNull();
            expect(await state.append(address, appendOf(context, ['stale'], { ifVersion }))).toMatchObject({
              batches: [],
            });
          }
          expect(await state.get(address)).toMatchObject({ value: 'bob', version: again[1] });
          await end(address);
        }
      },
    );

    it('FIX-40 never reuses a version for a document that an append creates again', async () => {
      const { state } = context.adapter;
      const address = addressOf(context);
      const first = await state.append(address, appendOf(context, [1], { initial: 'ann' }));
      const last = await state.append(address, appendOf(context, [2]));
      expect(versionOf(last)).toBe(versionOf(first) + 1);
      await state.delete(address);
      const empty = await state.append(address, appendOf(context, [], { initial: 'bob' }));
      expect(versionOf(empty)).toBeGreaterThan(versionOf(last));
      await state.delete(address);
      expect(versionOf(await state.append(address, appendOf(context, [1], { initial: 'bob' })))).toBeGreaterThan(
        versionOf(empty),
      );
    });

    it('FIX-40 rejects a stale compare-and-set while other clients delete and create the document', async () => {
      const { clients } = context;
      const address = addressOf(context);
      for (let round = 0; round < ROUNDS; round += 1) {
        const ifVersion = versionOf(await write(address, 'ann'));
        const replace = async (): Promise<void> => {
          const { state } = clients[round % clients.length];
          await state.delete(address);
          await state.set(address, 'bob');
        };
        const stale = clients.map(({ state }) => state.set(address, 'stale', { ifVersion }));
        const [answers] = await Promise.all([Promise.all(stale), replace()]);
        // A create may come before the delete, which then deletes its document.
        expect(answers.filter((answer) => answer !== null).length).toBeLessThanOrEqual(1);
        expect(await context.adapter.state.get(address)).toMatchObject({ value: 'bob' });
        await context.adapter.state.delete(address);
      }
    });
  });
}
