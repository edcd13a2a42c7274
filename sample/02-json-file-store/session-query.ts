import { compareSessions, decodeCursor, type Session, type SessionQuery } from 'nestjs-agent-sessions';
import { type Key } from './sorted-index.js';
import { type Store } from './store.js';
import { byActivity, ms } from './tables.js';

export function findSessions(store: Store, { limit = 50, ...query }: SessionQuery): Session[] {
  const found: Session[] = [];
  if (limit === 0) return found;
  for (const session of matches(store, query)) {
    if (found.push(session) === limit) break;
  }
  return found;
}

export function countSessions(store: Store, { cursor: _, ...query }: SessionQuery): number {
  return [...matches(store, query)].length;
}

/** The index narrows to a surface, else to a user, and to a time; the other conditions are asked of each session there. */
function* matches(store: Store, query: SessionQuery): Generator<Session> {
  const { surfaceId, userId, cursor, activeAfter, activeBefore } = query;
  const after = cursor === undefined ? undefined : decodeCursor(cursor);
  const start: Key = after ? byActivity(after) : activeBefore === undefined ? [] : [-ms(activeBefore)];
  for (const session of inOrder(store, surfaceId, userId, start)) {
    if (activeAfter !== undefined && ms(session.lastActivityAt) <= ms(activeAfter)) return;
    if (after && compareSessions(session, after) <= 0) continue;
    if (meets(session, query)) yield session;
  }
}

function inOrder(store: Store, surfaceId: string | undefined, userId: string | undefined, start: Key) {
  if (surfaceId !== undefined) return store.sessions.by('surface', [surfaceId], [surfaceId, ...start]);
  if (userId !== undefined) return store.sessions.by('user', [userId], [userId, ...start]);
  return store.sessions.by('recent', [], start);
}

function meets(session: Session, { userId, workspaceId, state, activeBefore }: SessionQuery): boolean {
  if (userId !== undefined && session.userId !== userId) return false;
  if (workspaceId !== undefined && (session.workspaceId ?? null) !== workspaceId) return false;
  if (state !== undefined && ![state].flat().includes(session.state)) return false;
  return activeBefore === undefined || ms(session.lastActivityAt) < ms(activeBefore);
}
