import { compareSessions, decodeCursor } from '../ledger/session.cursor.js';
import { type Session } from '../ledger/session.js';
import { type SessionQuery } from '../ledger/session-query.js';

/** Decides whether a session matches a checked query and comes after its cursor. `limit` is left to the caller. */
export function matcherOf(query: SessionQuery): (session: Session) => boolean {
  const { userId, workspaceId, state, surfaceId, activeAfter, activeBefore, cursor } = query;
  const states = state === undefined ? undefined : [state].flat();
  const after = cursor === undefined ? undefined : decodeCursor(cursor);
  return (session) =>
    (userId === undefined || session.userId === userId) &&
    // A foreign store may say `null` where a session has no workspace.
    (workspaceId === undefined || (session.workspaceId ?? null) === workspaceId) &&
    (states === undefined || states.includes(session.state)) &&
    (surfaceId === undefined || session.attachedSurfaces.includes(surfaceId)) &&
    (activeAfter === undefined || session.lastActivityAt > activeAfter) &&
    (activeBefore === undefined || session.lastActivityAt < activeBefore) &&
    (after === undefined || compareSessions(after, session) < 0);
}
