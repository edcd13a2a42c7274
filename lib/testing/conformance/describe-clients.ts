import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { type AtomicSessionStoreAdapter } from '../../ledger/session.store.js';
import { createActive, PLENTY, RULES } from './session-fixtures.js';
import { type ConformanceContext } from './target.js';
import { DESK, TestLane } from './test-lane.js';

/** Tests of two clients of one store: each sees the writes of the other, whatever it has read before. */
export function describeClients(context: ConformanceContext): void {
  describe('two clients', () => {
    const other = (): SessionsAdapter => context.clients[context.clients.length - 1];
    const otherSessions = (): AtomicSessionStoreAdapter => other().sessions as AtomicSessionStoreAdapter;

    it('SES-15 both see the current session', async () => {
      const { id, userId } = await createActive(context);
      const changes: (() => Promise<unknown>)[] = [
        () => context.sessions.mergeMetadata(id, { a: 1 }, PLENTY),
        () => context.sessions.attachSurface(id, 'web', RULES),
        () => context.sessions.expire(id),
        () => context.sessions.delete(id),
      ];
      for (const change of changes) {
        await seen(otherSessions(), id, userId);
        await change();
        expect(await seen(otherSessions(), id, userId)).toEqual(await seen(context.sessions, id, userId));
      }
    });

    it('TRN-01 both see the current turns, messages and checkpoints', async () => {
      const lane = await TestLane.open(context);
      const { id } = await lane.queue('first');
      const seen = async (adapter: SessionsAdapter): Promise<unknown> => ({
        turn: await adapter.turns.get(id),
        turns: await adapter.turns.list({ sessionId: lane.sessionId }),
        messages: await adapter.conversations.page(lane.sessionId),
        window: await adapter.conversations.window(lane.sessionId, 10),
        checkpoint: await adapter.checkpoints.load(DESK, lane.sessionId),
        session: await adapter.sessions.fetchById(lane.sessionId),
      });

      await seen(other());
      const { hold, turn } = await lane.take();
      expect(await seen(other())).toEqual(await seen(context.adapter));
      await lane.settle(hold, lane.settlement(turn, 0));
      expect(await seen(other())).toEqual(await seen(context.adapter));
    });

    it('TRN-03 the second cannot claim a turn of the first until its lease has lapsed', async () => {
      const lane = await TestLane.open(context);
      await lane.queue('first');
      const { hold } = await lane.take();
      expect(await other().turns.claim(lane.sessionId, lane.claimRequest())).toBeNull();
      await other().turns.release(hold, 0);
      expect(await other().turns.claim(lane.sessionId, lane.claimRequest())).not.toBeNull();
      await expect(lane.settle(hold)).rejects.toThrow();
    });

    it('both see the current documents and leases', async () => {
      const address = { namespace: context.id(), scope: '', sessionId: context.id(), key: 'state' };
      const lease = context.id();
      const { version = NaN } = (await context.adapter.state.set(address, 'first')) ?? {};
      expect(await other().state.get(address)).toMatchObject({ value: 'first' });
      await context.adapter.state.set(address, 'second');
      expect(await other().state.get(address)).toMatchObject({ value: 'second', version: version + 1 });
      expect(await other().state.set(address, 'late', { ifVersion: version })).toBeNull();
      await context.adapter.state.append(address, { id: context.id(), entries: [3] });
      expect(await other().state.get(address)).toMatchObject({ batches: [{ entries: [3] }], version: version + 2 });
      await other().state.append(address, { id: context.id(), entries: [4] });
      expect(await context.adapter.state.get(address)).toEqual(await other().state.get(address));

      expect(await context.adapter.leases.acquire(lease, 'a', PLENTY)).not.toBeNull();
      expect(await other().leases.acquire(lease, 'b', PLENTY)).toBeNull();
    });
  });
}

async function seen(sessions: AtomicSessionStoreAdapter, id: string, userId: string): Promise<unknown> {
  return {
    session: await sessions.fetchById(id),
    found: await sessions.fetchMany({ userId }),
    active: await sessions.count({ userId, state: 'active' }),
  };
}
