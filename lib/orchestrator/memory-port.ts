import { assertName } from '../common/ids.js';
import { type JsonValue } from '../common/json.js';
import { type MessageDraft } from '../ledger/message.js';
import { type Session } from '../ledger/session.js';
import { type TurnInput } from '../ledger/turn.js';

/**
 * Which sessions share a memory: none (`session`), all sessions of a `user` in a workspace, or those for which the
 * function returns the same key.
 */
export type MemoryScope = 'session' | 'user' | ((session: Session) => string);

/** The turn for which memories are recalled. */
export interface MemoryQuery {
  /** The key that separates memories: a session's, a user's, or a custom key of the application. */
  readonly scope: string;
  /** The session of the turn. */
  readonly sessionId: string;
  /** The id of the turn; the same in every attempt. */
  readonly turnId: string;
  /** The user's input. */
  readonly input: TurnInput;
}

/** A settled turn. */
export interface MemorableTurn extends MemoryQuery {
  readonly reply: string | null;
  /** The messages that the turn added to the conversation, the user's message first. */
  readonly messages: readonly MessageDraft[];
}

/** Long-term memory of an orchestrator beyond the conversation: a vector store, a profile, notes (BOT-51). */
export abstract class MemoryPort {
  /**
   * Recalls memories before dispatch, in every attempt. An error fails the attempt. @returns JSON, for `turn.memories`
   */
  abstract recall(query: MemoryQuery): Promise<readonly JsonValue[]>;
  /**
   * Stores memories of a turn that succeeded, after its result is returned to the caller. Errors are logged. A process
   * that shuts down waits for it as long as for running turns. If the process is killed first, the turn is not
   * remembered.
   */
  abstract remember(turn: MemorableTurn): Promise<void>;
}

export function memoryKey(scope: MemoryScope, session: Session): string {
  if (typeof scope === 'function') {
    const key: unknown = scope(session);
    assertName(key, 'The result of memoryScope');
    return key;
  }
  const { id, userId, workspaceId } = session;
  if (scope === 'session') return `session:${id}`;
  // The length prefix prevents collisions between different pairs of ids.
  return `user:${workspaceId?.length ?? 0}:${workspaceId ?? ''}:${userId}`;
}
