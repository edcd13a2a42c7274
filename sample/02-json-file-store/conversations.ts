import {
  type ConversationLog,
  type Message,
  type NewMessage,
  SessionNotFoundError,
  type Turn,
} from 'nestjs-agent-sessions';
import { assertMayWrite } from './documents.js';
import { type Store } from './store.js';

export const conversationsPort = (store: Store): ConversationLog => ({
  append: (sessionId, messages, ownership) =>
    store.commit(() => {
      assertMayWrite(store, sessionId, ownership?.requireSession);
      return appendMessages(store, sessionId, messages);
    }),
  window: (sessionId, limit) => store.read(() => windowOf(store, sessionId, limit)),
  sessions: (after, limit) => store.read(() => sessionsAfter(store, after, limit)),
  page: (sessionId, { after = 0, limit = 100 } = {}) => store.read(() => range(store, sessionId, after, limit)),
});

export function appendMessages(
  store: Store,
  sessionId: string,
  messages: readonly NewMessage[],
  turn?: Turn,
): Message[] {
  if (store.erased.get(sessionId)) throw new SessionNotFoundError(sessionId);
  return messages.map(({ orchestrator = turn?.orchestrator ?? null, ...message }) => {
    const origin = { ...(orchestrator !== null && { orchestrator }), ...(turn && { turnId: turn.id }) };
    const position = lengthOf(store, sessionId) + 1;
    return store.messages.put({ sessionId, message: { ...message, ...origin, position, createdAt: store.time() } })
      .message;
  });
}

/** The last messages, led by the log's first one when that is a system message. */
export function windowOf(store: Store, sessionId: string, limit: number): Message[] {
  if (limit <= 0) return [];
  const last = range(store, sessionId, Math.max(0, lengthOf(store, sessionId) - limit), limit);
  const first = store.messages.get(sessionId, 1)?.message;
  return first?.role === 'system' && last[0].position > 1 ? [first, ...last] : last;
}

function range(store: Store, sessionId: string, after: number, limit: number): Message[] {
  const found: Message[] = [];
  for (const { message } of store.messages.by('log', [sessionId], [sessionId, after + 1])) {
    if (found.length >= limit) break;
    found.push(message);
  }
  return found;
}

function sessionsAfter(store: Store, after: string, limit: number): string[] {
  const found: string[] = [];
  for (let next = store.messages.first('log', [], [after, Infinity]); next && found.length < limit;) {
    found.push(next.sessionId);
    next = store.messages.first('log', [], [next.sessionId, Infinity]);
  }
  return found;
}

function lengthOf(store: Store, sessionId: string): number {
  return store.messages.last('log', [sessionId])?.message.position ?? 0;
}
