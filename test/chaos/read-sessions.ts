import {
  type Checkpoint,
  createOrchestrationStateManager,
  type ConversationMessage,
  type SessionsAdapter,
  type Turn,
  type TurnEvent,
} from 'nestjs-agent-sessions';
import { readAll } from '../support/read-all.js';
import { ORCHESTRATOR } from './actor/chaos.orchestrator.js';
import { type SessionContents } from './history/history.js';
import { type Place } from './environment/place.js';

/** Reads all data of the sessions in the store. */
export async function readSessions(place: Place, sessionIds: readonly string[]): Promise<SessionContents[]> {
  const store = place.openStore();
  await store.init?.();
  try {
    const sessions: SessionContents[] = [];
    for (const sessionId of sessionIds) sessions.push(await readSession(store, sessionId));
    return sessions;
  } finally {
    await store.close?.();
  }
}

async function readSession(store: SessionsAdapter, sessionId: string): Promise<SessionContents> {
  const turns = await readAll<Turn>((last, limit) =>
    store.turns.list({ sessionId, after: last?.position ?? 0, limit }),
  );
  const messages = await readAll<ConversationMessage>((last, limit) =>
    store.conversations.page(sessionId, { after: last?.position ?? 0, limit }),
  );
  const checkpoints = await readAll<Checkpoint>((last, limit) =>
    store.checkpoints.history(ORCHESTRATOR, sessionId, { limit, ...(last ? { before: last.turnIndex } : {}) }),
  );
  const events = await Promise.all(
    turns.map(
      async ({ id }) =>
        [id, await readAll<TurnEvent>((last, limit) => store.events.read(id, last?.offset ?? 0, limit))] as const,
    ),
  );
  const lane = await store.turns.lane(sessionId);
  const states = createOrchestrationStateManager({ storageProvider: store.state, cleanup: { enabled: false } });
  return {
    sessionId,
    turns,
    messages,
    checkpoints: checkpoints.reverse(),
    events: Object.fromEntries(events),
    lane,
    orchestration: await states.of(ORCHESTRATOR).getState(sessionId),
  };
}
