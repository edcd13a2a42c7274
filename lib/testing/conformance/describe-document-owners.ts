import { SessionNotFoundError, SessionStateError } from '../../ledger/session.errors.js';
import { type Session } from '../../ledger/session.js';
import { type StateAddress, type StateDocument } from '../../ledger/state.store.js';
import { addressOf, appendOf } from './document-fixtures.js';
import { create, PLENTY } from './session-fixtures.js';
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

    const writesFor = (address: StateAddress, requireSession: Session): Record<string, () => Promise<unknown>> => ({
      set: () => context.adapter.state.set(address, 'late', { requireSession }),
      append: () => context.adapter.state.append(address, appendOf(context, [1], { initial: 'late', requireSession })),
      messages: () =>
        context.adapter.conversations.append(address.sessionId, [{ id: 'm', role: 'user', content: 'late' }], {
          requireSession,
        }),
    });
    const kinds = ['set', 'append', 'messages'];

    it.each(kinds)('FIX-90 %s writes for the required session only', async (kind) => {
      const first = await create(context);
      const { id } = first;
      const address = addressOf(context, { sessionId: id });
      await writesFor(address, first)[kind]();
      await context.sessions.touch(id);
      await writesFor(address, first)[kind]();
      for (const other of [{ userId: 'another user' }, { createdAt: new Date(0).toISOString() }]) {
        await expect(writesFor(address, { ...first, ...other })[kind]()).rejects.toBeInstanceOf(SessionNotFoundError);
      }
      await context.sessions.delete(id);
      await expect(writesFor(address, first)[kind]()).rejects.toBeInstanceOf(SessionNotFoundError);
      const second = await create(context, { id });
      await expect(writesFor(address, first)[kind]()).rejects.toBeInstanceOf(SessionNotFoundError);
      expect(await context.adapter.state.get(address)).toBeNull();
      expect(await context.adapter.conversations.page(id)).toEqual([]);
      await writesFor(address, second)[kind]();
      await context.sessions.expire(id);
      await expect(writesFor(address, second)[kind]()).rejects.toBeInstanceOf(SessionStateError);
    });

    it('FIX-90 merges metadata into the required session only', async () => {
      const first = await create(context);
      const { id } = first;
      const merge = (required: Session) => context.sessions.mergeMetadata(id, { late: true }, PLENTY, required);
      expect((await merge(first)).session.metadata).toEqual({ late: true });
      const other = { ...first, createdAt: new Date(0).toISOString() };
      await expect(merge(other)).rejects.toBeInstanceOf(SessionNotFoundError);
      await context.sessions.delete(id);
      await expect(merge(first)).rejects.toBeInstanceOf(SessionNotFoundError);
      const second = await create(context, { id });
      await expect(merge(first)).rejects.toBeInstanceOf(SessionNotFoundError);
      expect(await context.sessions.fetchById(id)).toEqual(second);
      await context.sessions.expire(id);
      expect((await merge(second)).session.metadata).toEqual({ late: true });
    });

    it.each(kinds)('FIX-90 %s leaves nothing in a session that gets the id concurrently', async (kind) => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const first = await create(context);
        const { id } = first;
        const address = addressOf(context, { sessionId: id });
        const write = writesFor(address, first)[kind];
        const written = write().catch((error: unknown) => expect(error).toBeInstanceOf(SessionNotFoundError));
        const { sessions } = context.clients[round % context.clients.length];
        const replaced = sessions.delete(id).then(() => create(context, { id }));
        await Promise.all([written, replaced]);
        expect(await context.adapter.state.get(address)).toBeNull();
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
