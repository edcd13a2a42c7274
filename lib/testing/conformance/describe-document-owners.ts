import { SessionNotFoundError, SessionStateError } from '../../ledger/session.errors.js';
import { type StateAddress, type StateDocument } from '../../ledger/state.store.js';
import { addressOf, appendOf } from './document-fixtures.js';
import { create } from './session-fixtures.js';
import { type ConformanceContext } from './target.js';

const ROUNDS = 10;

/** Tests of writes that require their session (FIX-41). */
export function describeDocumentOwners(context: ConformanceContext): void {
  describe('documents that require their session', () => {
    const writes: Record<string, (address: StateAddress) => Promise<StateDocument | null>> = {
      set: (address) => context.adapter.state.set(address, 'late', { requireSession: true }),
      append: (address) =>
        context.adapter.state.append(address, appendOf(context, [1], { initial: 'late', requireSession: true })),
    };
    const cases = Object.entries(writes);

    it.each(cases)('FIX-41 %s writes for a session in every live state', async (_, write) => {
      const { id } = await create(context);
      const address = addressOf(context, { sessionId: id });
      expect(await write(address)).toMatchObject({ value: 'late' });
      await context.sessions.touch(id);
      expect(await write(address)).not.toBeNull();
    });

    it.each(cases)('FIX-41 %s is rejected for an unknown and a deleted session', async (_, write) => {
      const unknown = addressOf(context);
      await expect(write(unknown)).rejects.toBeInstanceOf(SessionNotFoundError);
      const { id } = await create(context);
      const address = addressOf(context, { sessionId: id });
      await write(address);
      await context.sessions.delete(id);
      await expect(write(address)).rejects.toBeInstanceOf(SessionNotFoundError);
      await create(context, { id });
      for (const left of [unknown, address]) expect(await context.adapter.state.get(left)).toBeNull();
    });

    it.each(cases)('FIX-41 %s is rejected for an expired session', async (_, write) => {
      const { id } = await create(context);
      const address = addressOf(context, { sessionId: id });
      await context.sessions.expire(id);
      await expect(write(address)).rejects.toBeInstanceOf(SessionStateError);
      expect(await context.adapter.state.get(address)).toBeNull();
    });

    it('FIX-41 rejects messages for an unknown, a deleted and an expired session', async () => {
      const append = (id: string) =>
        context.adapter.conversations.append(id, [{ id: 'm', role: 'user', content: 'late' }], {
          requireSession: true,
        });
      const { id } = await create(context);
      expect(await append(id)).toMatchObject([{ content: 'late' }]);
      const expired = await create(context);
      await context.sessions.expire(expired.id);
      await expect(append(expired.id)).rejects.toBeInstanceOf(SessionStateError);
      await context.sessions.delete(id);
      const unknown = context.id();
      for (const gone of [id, unknown]) {
        await expect(append(gone)).rejects.toBeInstanceOf(SessionNotFoundError);
        await create(context, { id: gone });
        expect(await context.adapter.conversations.page(gone)).toEqual([]);
      }
    });

    it('FIX-41 leaves no messages of a session that is deleted concurrently', async () => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const { id } = await create(context);
        const messages = [{ id: 'm', role: 'user', content: 'late' }] as const;
        const late = context.adapter.conversations
          .append(id, messages, { requireSession: true })
          .catch((error: unknown) => expect(error).toBeInstanceOf(SessionNotFoundError));
        await Promise.all([late, context.clients[round % context.clients.length].sessions.delete(id)]);
        await create(context, { id });
        expect(await context.adapter.conversations.page(id)).toEqual([]);
      }
    });

    it.each(cases)('FIX-41 %s leaves nothing of a session that is deleted concurrently', async (_, write) => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const { id } = await create(context);
        const address = addressOf(context, { sessionId: id });
        const late = write(address).catch((error: unknown) => expect(error).toBeInstanceOf(SessionNotFoundError));
        await Promise.all([late, context.clients[round % context.clients.length].sessions.delete(id)]);
        await create(context, { id });
        expect(await context.adapter.state.get(address)).toBeNull();
      }
    });
  });
}
