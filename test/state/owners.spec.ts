import {
  InMemorySessionStoreAdapter,
  OrchestrationStateManager,
  SessionNotFoundError,
  type SessionsAdapter,
  SessionsModule,
  SessionStateError,
  SessionStateService,
  SessionStore,
} from 'nestjs-agent-sessions';
import { startApplication } from '../support/application.js';
import { LIVE_STORES, rejection } from '../support/running-application.js';

const STORES: readonly { readonly name: string; readonly open: () => SessionsAdapter }[] = [
  ...LIVE_STORES,
  {
    name: `sessions in a foreign store, the rest on ${LIVE_STORES[0].name}`,
    open: () => foreign(LIVE_STORES[0].open()),
  },
];

describe.each(STORES)('the owner of state, over $name', ({ open }) => {
  it('FIX-41 writes no state of unknown, deleted and expired sessions', async () => {
    const app = await startApplication({ imports: [SessionsModule.forRoot({ adapter: open(), sweep: false })] });
    try {
      const [sessions, state, manager] = [
        app.get(SessionStore),
        app.get(SessionStateService),
        app.get(OrchestrationStateManager),
      ];
      const writes: ((id: string) => Promise<unknown>)[] = [
        (id) => state.tools.set(id, 'search', 'k', 'secret of ann'),
        (id) => state.tools.patch(id, 'search', 'k', { secret: true }),
        (id) => state.tools.increment(id, 'search', 'n'),
        (id) => state.conversation.append(id, [{ role: 'user', content: 'secret of ann' }]),
        (id) => state.task.create(id),
        (id) => state.flow.save(id, 'onboarding', 'secret of ann'),
        (id) => manager.of('desk').getOrCreateState(id),
        (id) => manager.of('desk').addUsedTool(id, 'search'),
        (id) => manager.of('desk').resetState(id),
      ];
      const { id } = await sessions.create({ userId: 'ann' });
      const expired = await sessions.create({ userId: 'ann' });
      await sessions.expire(expired.id);
      await sessions.delete(id);
      for (const write of writes) {
        for (const sessionId of ['unknown', id]) await rejection(write(sessionId), SessionNotFoundError);
        await rejection(write(expired.id), SessionStateError);
      }

      // The next owner of the id finds no state, and can write.
      await sessions.create({ id, userId: 'bob' });
      expect(await state.tools.list(id)).toEqual({ items: [] });
      expect(await state.conversation.list(id)).toEqual([]);
      expect((await state.task.list(id)).items).toEqual([]);
      expect(await state.flow.load(id, 'onboarding')).toBeNull();
      expect(await manager.of('desk').getState(id)).toBeNull();
      expect(await state.tools.set(id, 'search', 'k', 'of bob')).toMatchObject({ value: 'of bob' });
    } finally {
      await app.close();
    }
  });
});

/** An adapter whose session store has only the five required methods. */
function foreign(adapter: SessionsAdapter): SessionsAdapter {
  const sessions = new InMemorySessionStoreAdapter();
  const five = {
    insert: sessions.insert.bind(sessions),
    fetchById: sessions.fetchById.bind(sessions),
    fetchMany: sessions.fetchMany.bind(sessions),
    update: sessions.update.bind(sessions),
    delete: sessions.delete.bind(sessions),
  };
  return new Proxy(adapter, {
    get: (target, port) => {
      const value: unknown = port === 'sessions' ? five : Reflect.get(target, port, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
