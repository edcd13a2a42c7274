import {
  defineOrchestrator,
  memoryAdapter,
  reply,
  SessionNotFoundError,
  type SessionsAdapter,
  type SessionStoreAdapter,
} from 'nestjs-agent-sessions';
import { LIVE_STORES, rejection, startApplication } from '../support/running-application.js';

const desk = defineOrchestrator({ name: 'desk', intents: { answer: async () => reply('Hello.') } });

const STORES = [...LIVE_STORES, { name: 'memory with external sessions', open: withExternalSessions }];

describe.each(STORES)('a session that was deleted and created again, over $name', ({ open }) => {
  it.each(['submit', 'execute'] as const)('FIX-90 gets no turn of the earlier session by %s', async (method) => {
    const { sessions, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const session = await sessions.create({ userId: 'ann' });
    const { id: sessionId } = session;
    await sessions.delete(sessionId);
    const other = await sessions.create({ id: sessionId, userId: 'bob' });

    await rejection(turns[method]('desk', 'late', { sessionId, session }), SessionNotFoundError);
    expect(await turns.list({ sessionId })).toEqual([]);
    expect(await sessions.get(sessionId)).toEqual(other);

    await turns[method]('desk', 'hello', { sessionId, session: other });
    expect(await turns.list({ sessionId })).toHaveLength(1);
  });
});

/** A store in memory whose sessions have only the five methods. */
function withExternalSessions(): SessionsAdapter {
  const adapter = memoryAdapter();
  const { sessions: rows } = adapter;
  const sessions: SessionStoreAdapter = {
    insert: (session) => rows.insert(session),
    fetchById: (id) => rows.fetchById(id),
    fetchMany: (query) => rows.fetchMany(query),
    update: (id, patch) => rows.update(id, patch),
    delete: (id) => rows.delete(id),
  };
  return { ...adapter, sessions };
}
