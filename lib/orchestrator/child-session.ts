import { sha256 } from '../common/digests.js';
import { SessionConflictError } from '../ledger/session.errors.js';
import { type Session } from '../ledger/session.js';
import { type SessionStore } from '../session/session-store.service.js';
import { type TurnResult } from '../turn/turn-result.js';
import { type TurnService } from '../turn/turn.service.js';
import { isTerminal } from '../ledger/turn.js';

const MAX_ID = 200;

/** A repeated call searches this number of latest turns of an ended session. */
const LATEST = 20;

/**
 * Runs a turn in the session `<parent>/<name>`. The first use creates it with the parent's owner; processes may race. If the
 * session has ended or was erased, `<parent>/<name>~2` is used instead, and so on. A repeated call returns the result of its
 * turn, even if the session has ended since.
 * @param key the idempotency key of the turn
 * @throws SessionConflictError when another user owns the id; what `ask` throws, and the turn's error
 */
export async function inChildSession(
  turns: TurnService,
  sessions: SessionStore,
  parent: Session,
  { name, key }: { readonly name: string; readonly key: string },
  ask: (sessionId: string) => Promise<TurnResult>,
): Promise<TurnResult> {
  const { id, ended } = await childSession(sessions, parent, name);
  if (ended !== undefined) {
    const latest = await turns.list({ sessionId: ended, limit: LATEST, order: 'desc' });
    const known = latest.find(({ idempotencyKey }) => idempotencyKey === key);
    // The end of the session has cancelled a turn that was open.
    if (known && known.status !== 'cancelled') return turns.result(known.id);
  }
  return ask(id);
}

/** @returns the id of the session to use, and that of the one before it, which has ended */
async function childSession(
  sessions: SessionStore,
  parent: Session,
  name: string,
): Promise<{ readonly id: string; readonly ended?: string }> {
  let before: { ended?: string } = {};
  for (let number = 1; ; number += 1) {
    const id = childId(parent.id, number === 1 ? name : `${name}~${number}`);
    const child = (await sessions.get(id)) ?? (await make(sessions, parent, id));
    if (!child) continue;
    assertOwner(child, parent);
    if (!sessions.isOver(child)) return { id, ...before };
    before = { ended: id };
  }
}

/**
 * Runs one turn in a separate session `<parent>/<name>`, which expires after the turn. A repeated call returns the
 * result of the existing turn.
 * @throws SessionConflictError when another user owns the id; what `ask` throws, and the turn's error
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
  const { id } = await childSession(sessions, parent, name);
  try {
    return await ask(id);
  } finally {
    // If this fails, the sweep expires the session later.
    await expireWhenOver(turns, sessions, id).catch(() => undefined);
  }
}

/** Leaves the session open while its turn is unfinished: the caller's next attempt continues it. */
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
    if (SessionConflictError.isInstance(error)) return sessions.get(id);
    throw error;
  }
}

/** Shortens an id that is too long, and appends its hash. */
export function childId(parent: string, name: string): string {
  const id = `${parent}/${name}`;
  if (id.length <= MAX_ID) return id;
  const hash = sha256(id);
  return `${id.slice(0, MAX_ID - hash.length - 1)}~${hash}`;
}
