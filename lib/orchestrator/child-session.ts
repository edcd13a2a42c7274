import { sha256 } from '../common/sha-256.js';
import { SessionConflictError } from '../ledger/session.errors.js';
import { type Session } from '../ledger/session.js';
import { type SessionStore } from '../session/session-store.service.js';
import { type TurnResult } from '../turn/turn-result.js';
import { type TurnService } from '../turn/turn.service.js';
import { isTerminal } from '../ledger/turn.js';

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
    assertOwner(child, parent);
    if (!sessions.isOver(child)) return id;
  }
}

/**
 * Does one turn in a session `<parent>/<name>` of its own, which expires once the turn is over. A call that is repeated gets
 * the result of the turn that is there.
 * @throws SessionConflictError when somebody else has the id; what `ask` throws, and the turn's error
 */
export async function inFreshSession(
  turns: TurnService,
  sessions: SessionStore,
  parent: Session,
  name: string,
  ask: (sessionId: string) => Promise<TurnResult>,
): Promise<TurnResult> {
  const known = await sessions.get(childId(parent.id, name));
  if (known && sessions.isOver(known)) {
    assertOwner(known, parent);
    const [turn] = await turns.list({ sessionId: known.id, limit: 1 });
    if (turn) return turns.result(turn.id);
  }
  const id = await childSession(sessions, parent, name);
  try {
    return await ask(id);
  } finally {
    // Where that fails, the sweep expires it as it does other sessions.
    await expireWhenOver(turns, sessions, id).catch(() => undefined);
  }
}

/** A turn that is not over goes on: the caller's next attempt asks for it. */
async function expireWhenOver(turns: TurnService, sessions: SessionStore, sessionId: string): Promise<void> {
  const [turn] = await turns.list({ sessionId, limit: 1 });
  if (turn && isTerminal(turn.status)) await sessions.expire(sessionId);
}

function assertOwner(child: Session, parent: Session): void {
  if (child.userId !== parent.userId || child.workspaceId !== parent.workspaceId)
    throw new SessionConflictError(child.id);
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

/** Whether an orchestrator made the session for itself, as a tool of another one. */
export function isChildSession({ metadata }: Session): boolean {
  return typeof metadata.parentSessionId === 'string';
}

/** What does not fit ends in its hash. */
export function childId(parent: string, name: string): string {
  const id = `${parent}/${name}`;
  if (id.length <= MAX_ID) return id;
  const hash = sha256(id);
  return `${id.slice(0, MAX_ID - hash.length - 1)}~${hash}`;
}
