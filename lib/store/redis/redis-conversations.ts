import { type ConversationLog, type MessageRange, type NewMessage } from '../../ledger/conversation.store.js';
import { type ConversationMessage } from '../../ledger/message.js';
import { type StateOwnership } from '../../ledger/state.store.js';
import { type RedisDatabase } from './redis-database.js';
import { requiredSession } from './redis-documents.js';
import { messagesOf, messageText, type StoredWindow, windowOf } from './redis-rows.js';
import { SCRIPTS } from './redis-scripts.js';

/** Stores the message log in Redis. */
export class RedisConversations implements ConversationLog {
  constructor(private readonly db: RedisDatabase) {}

  async append(
    sessionId: string,
    messages: readonly NewMessage[],
    ownership: StateOwnership = {},
  ): Promise<ConversationMessage[]> {
    const texts = messages.map(messageText);
    const args = [sessionId, requiredSession(ownership), ...texts];
    const [last, createdAt] = await this.db.run<[number, number]>(SCRIPTS.appendMessages, ...args);
    const stored = texts.map((text) => `${createdAt}\n\n\n${text}`);
    return messagesOf(sessionId, stored, last - texts.length + 1);
  }

  async window(sessionId: string, limit: number): Promise<ConversationMessage[]> {
    const [window] = await this.db.run<[StoredWindow]>(SCRIPTS.messageWindow, sessionId, limit);
    return windowOf(sessionId, window);
  }

  async page(sessionId: string, { after = 0, limit = 100 }: MessageRange = {}): Promise<ConversationMessage[]> {
    const [stored] = await this.db.run<[string[]]>(SCRIPTS.messagePage, sessionId, after, limit);
    return messagesOf(sessionId, stored, after + 1);
  }

  async sessions(after: string, limit: number): Promise<string[]> {
    const [ids] = await this.db.run<[string[]]>(SCRIPTS.conversedSessions, `(${after}`, limit);
    return ids;
  }
}
