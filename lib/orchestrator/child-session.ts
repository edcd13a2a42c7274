import { createHash } from 'node:crypto';
import { SessionConflictError } from '../session/session.errors.js';
import { type Session } from '../session/session.js';
import { type SessionStore } from '../session/session-store.service.js';

const MAX_ID = 200;

/**
 * The session `<parent>/<name>`, made at the first use with the parent's owner, whichever process comes first. One that is over,
 * or was erased, is followed by `<parent>/<name>~2` and so on.
 * @throws SessionConflictError when somebody else has the id
 */
export async function childSession(sessions: SessionStore, parent: Session, name: string): Promise<string> {
  for (let number = 1; ; number += 1) {
    const id = childId(parent.id, number === 1 ? name : `${name}~${number}`);
    const child = (await sessions.get(id)) ?? (await make(sessions, parent, id));
    if (!child) continue;
    if (child.userId !== parent.userId || child.workspaceId !== parent.workspaceId) throw new SessionConflictError(id);
    if (!sessions.isOver(child)) return id;
  }
}

/** @returns null when the id was used before and erased */
async function make(sessions: SessionStore, parent: Session, id: string): Promise<Session | null> {
  const { userId, workspaceId } = parent;
  const metadata = { parentSessionId: parent.id };
  try {
    return await sessions.create({ id, userId, metadata, ...(workspaceId === undefined ? {} : { workspaceId }) });
  } catch (error) {
    if (error instanceof SessionConflictError) return sessions.get(id);
    throw error;
  }
}

/** What does not fit ends in its hash. */
export function childId(parent: string, name: string): string {
  const id = `${parent}/${name}`;
  if (id.length <= MAX_ID) return id;
  const hash = createHash('sha256').update(id).digest('hex');
  return `${id.slice(0, MAX_ID - hash.length - 1)}~${hash}`;
}
