import { isDeepStrictEqual } from 'node:util';
import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { type AtomicSessionStoreAdapter } from 'nestjs-agent-sessions/adapter';
import { WrongAnswerError } from './wrong-answer.error.js';
import {
  answerOf,
  FIRST_KEY,
  idOf,
  ORCHESTRATOR,
  type Population,
  questionOf,
  SESSIONS_OF_USER,
  sessionOf,
  stateOf,
  surfaceOf,
  turnIdOf,
  userOf,
} from './population.js';

/** Reads the filled data through all queries and checks it. @throws WrongAnswerError */
export async function checkFill(adapter: SessionsAdapter, population: Population): Promise<void> {
  const { count } = population;
  const sessions = adapter.sessions as AtomicSessionStoreAdapter;
  for (const n of new Set([0, 1, count / 2 - 1, count / 2, Math.floor(count * 0.77), count - 1])) {
    const session = sessionOf(n, population);
    same('session', await sessions.fetchById(idOf(n)), session);
    same('surface', await sessions.fetchMany({ surfaceId: surfaceOf(n) }), [session]);
    same('user', ids(await sessions.fetchMany({ userId: userOf(n, population) })), ids(sessionsOfUser(n, population)));
    const inWorkspace = { userId: session.userId, workspaceId: session.workspaceId, state: session.state };
    same('user in a state', await sessions.count(inWorkspace), SESSIONS_OF_USER / 2);
    await checkContents(adapter, n);
  }
  same('active', await sessions.count({ state: 'active' }), count / 2);
  same('suspended', await sessions.count({ state: 'suspended' }), count / 2);
  same('lanes with work', await adapter.turns.due(10), []);
}

async function checkContents({ turns, checkpoints, conversations }: SessionsAdapter, n: number): Promise<void> {
  const sessionId = idOf(n);
  const [turn, ...others] = await turns.list({ sessionId });
  const { id, position, status, turnIndex, reply, request, idempotencyKey } = turn;
  same(
    'turn',
    { id, position, status, turnIndex, reply, request, idempotencyKey, others },
    {
      id: turnIdOf(n),
      position: 1,
      status: 'awaiting-input',
      turnIndex: 0,
      reply: { text: answerOf(n) },
      request: { input: { text: questionOf(n) } },
      idempotencyKey: FIRST_KEY,
      others: [],
    },
  );
  const checkpoint = await checkpoints.load(ORCHESTRATOR, sessionId);
  same('checkpoint', [checkpoint?.turnIndex, checkpoint?.turnId, checkpoint?.state], [0, turn.id, stateOf(n)]);
  const messages = await conversations.window(sessionId, 20);
  same(
    'messages',
    messages.map((message) => [message.id, message.position, message.role, message.content, message.turnId]),
    [
      [`${turn.id}.0`, 1, 'user', questionOf(n), turn.id],
      [`${turn.id}.1`, 2, 'assistant', answerOf(n), turn.id],
    ],
  );
}

function sessionsOfUser(n: number, population: Population): { id: string }[] {
  const users = population.count / SESSIONS_OF_USER;
  return Array.from({ length: SESSIONS_OF_USER }, (_, i) => ({ id: idOf((n % users) + i * users) }));
}

function ids(sessions: readonly { readonly id: string }[]): string[] {
  return sessions.map(({ id }) => id).sort();
}

function same(what: string, found: unknown, filled: unknown): void {
  if (isDeepStrictEqual(found, filled)) return;
  throw new WrongAnswerError(
    `The store was filled wrongly: ${what} ${JSON.stringify(found)}, not ${JSON.stringify(filled)}.`,
  );
}
