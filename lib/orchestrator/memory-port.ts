import { type JsonValue } from '../common/json.js';
import { type MessageDraft } from '../ledger/message.js';
import { type Session } from '../ledger/session.js';
import { type TurnInput } from '../ledger/turn.js';

/** Who shares what is remembered: nobody (`session`), every session of a `user` in a workspace, or whoever the function names. */
export type MemoryScope = 'session' | 'user' | ((session: Session) => string);

/** What a memory is asked with. */
export interface MemoryQuery {
  /** The key under which memories are kept apart: a session's, a user's, or the application's own. */
  readonly scope: string;
  /** The session of the turn. */
  readonly sessionId: string;
  /** The turn that asks; the same in every attempt. */
  readonly turnId: string;
  /** What the user said. */
  readonly input: TurnInput;
}

/** A turn that has settled. */
export interface MemorableTurn extends MemoryQuery {
  readonly reply: string | null;
  /** What the turn added to the conversation, the user's message first. */
  readonly messages: readonly MessageDraft[];
}

/** What an orchestrator knows beyond its conversation: a vector store, a profile, notes (BOT-51). */
export abstract class MemoryPort {
  /** Before dispatch, in every attempt. What it throws fails the attempt. @returns JSON, for `turn.memories` */
  abstract recall(query: MemoryQuery): Promise<readonly JsonValue[]>;
  /**
   * After a turn that succeeded, off the caller's path. What it throws is logged. A process that stops waits for it as long as
   * for turns that run; one that is killed in between leaves it out.
   */
  abstract remember(turn: MemorableTurn): Promise<void>;
}

export function memoryKey(scope: MemoryScope, session: Session): string {
  if (typeof scope === 'function') return scope(session);
  const { id, userId, workspaceId } = session;
  if (scope === 'session') return `session:${id}`;
  // Lengths keep apart what names alone could spell alike.
  return `user:${workspaceId?.length ?? 0}:${workspaceId ?? ''}:${userId}`;
}
