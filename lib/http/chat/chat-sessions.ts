import { type Logger } from '@nestjs/common';
import { isId } from '../../common/ids.js';
import { InvalidInputError } from '../../common/sessions.error.js';
import { SessionNotFoundError, SessionStateError } from '../../ledger/session.errors.js';
import { isSameSession } from '../../ledger/session.lifecycle.js';
import { type Session, SESSION_STATES } from '../../ledger/session.js';
import { isChildSession } from '../../session/is-child-session.js';
import { type SessionPage, type SessionStore } from '../../session/session-store.service.js';
import { ownsSession, type Principal } from '../../transport/principal.js';
import { touchAccepted } from '../controllers/client-turn.js';
import { type ListChatsQuery } from './chat.inputs.js';

const LIVE = SESSION_STATES.filter((state) => state !== 'expired');

/**
 * Finds the sessions of a user's chats (AIS-11). The id of a chat is the id of its session, or a surface of it. Chats of
 * other users are unknown.
 */
export class ChatSessions {
  /** @param allowClientIds whether a new chat's session gets the id that the client chose */
  constructor(
    private readonly sessions: SessionStore,
    private readonly allowClientIds: boolean,
  ) {}

  /** @throws InvalidInputError; SessionStateError if the session has expired */
  async find(principal: Principal, chatId: string): Promise<Session | null> {
    assertChatId(chatId);
    const session = await this.sessions.get(chatId);
    if (session && ownsSession(principal, session)) {
      if (this.sessions.isOver(session)) throw new SessionStateError(chatId, 'expired', 'use a chat');
      return session;
    }
    const [attached] = await this.sessions.find({ ...ownerOf(principal), state: LIVE, surfaceId: chatId, limit: 1 });
    return attached && !this.sessions.isOver(attached) ? attached : null;
  }

  /** Returns the chat's session, or creates it. @throws as `find`; SessionNotFoundError for the id of another user */
  async open(principal: Principal, chatId: string): Promise<Session> {
    const { userId, workspaceId } = principal;
    const own = { userId, ...(workspaceId === undefined ? {} : { workspaceId }) };
    return (
      (await this.find(principal, chatId)) ??
      (this.allowClientIds
        ? this.sessions.getOrCreate({ ...own, id: chatId })
        : this.sessions.createOrAdopt({ ...own, initialSurfaceId: chatId }))
    );
  }

  /** Returns the chats of the user, the latest activity first. */
  async list(principal: Principal, { cursor, limit }: ListChatsQuery): Promise<SessionPage> {
    const { sessions, nextCursor } = await this.sessions.page({
      ...ownerOf(principal),
      state: LIVE,
      ...(cursor === undefined ? {} : { cursor }),
      ...(limit === undefined ? {} : { limit }),
    });
    const chats = sessions.filter((session) => !isChildSession(session) && !this.sessions.isOver(session));
    return { sessions: chats, ...(nextCursor === undefined ? {} : { nextCursor }) };
  }

  /** Deletes the chat with all its data, for ever. An unknown chat is ignored. */
  async erase(principal: Principal, chatId: string): Promise<void> {
    assertChatId(chatId);
    const session = await this.sessions.get(chatId);
    const own = session && ownsSession(principal, session) ? session : await this.find(principal, chatId);
    if (!own) return;
    try {
      // Stops the running turn and its streams.
      await this.sessions.revoke(own.id, { session: own });
    } catch (error) {
      // Deleted concurrently. Another session may have the id now (FIX-90).
      if (SessionNotFoundError.isInstance(error)) return;
      throw error;
    }
    await this.sessions.erase(own.id, { session: own });
  }

  /** Records activity after a turn was accepted. */
  touch(session: Session, logger: Logger): Promise<void> {
    return touchAccepted(this.sessions, session, logger);
  }

  /** Returns false if the session was deleted. Another session may have its id then (FIX-90). */
  async isCurrent(session: Session): Promise<boolean> {
    const stored = await this.sessions.get(session.id);
    return stored !== null && isSameSession(stored, session);
  }

  /** Returns whether a session belongs to the user and can be used. */
  async isOwn(principal: Principal, sessionId: string): Promise<boolean> {
    const session = await this.sessions.get(sessionId);
    return session !== null && ownsSession(principal, session) && !this.sessions.isOver(session);
  }
}

/** A principal without a workspace sees sessions without a workspace (NST-24). */
function ownerOf({ userId, workspaceId }: Principal): { userId: string; workspaceId: string | null } {
  return { userId, workspaceId: workspaceId ?? null };
}

function assertChatId(chatId: string): void {
  // Slashes separate the ids of sessions that orchestrators create.
  if (!isId(chatId) || chatId.includes('/')) {
    throw new InvalidInputError(
      'id',
      'must be 1 to 200 letters, digits or . _ : @ + = ~ -, and begin with a letter or digit.',
    );
  }
}
