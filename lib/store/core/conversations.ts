import { type ConversationLog, type MessageRange, type NewMessage } from '../../ledger/conversation.store.js';
import { type ConversationMessage } from '../../ledger/message.js';
import { type StateOwnership } from '../../ledger/state.store.js';
import { assertMayWrite } from './lane.js';
import { toMessage, toMessageRow } from './row-mapping.js';
import { type CoreDatabase, type Transaction } from './tables.js';

/** Implements the message log on the tables of a store. */
export class CoreConversations implements ConversationLog {
  constructor(private readonly db: CoreDatabase) {}

  append(
    sessionId: string,
    messages: readonly NewMessage[],
    ownership: StateOwnership = {},
  ): Promise<ConversationMessage[]> {
    return this.db.write((tx) => {
      assertMayWrite(tx, sessionId, ownership);
      return appendMessages(tx, sessionId, messages);
    });
  }

  window(sessionId: string, limit: number): Promise<ConversationMessage[]> {
    return this.db.read((tx) => readWindow(tx, sessionId, limit));
  }

  sessions(after: string, limit: number): Promise<string[]> {
    return this.db.read((tx) => tx.messages.sessions(after, limit));
  }

  page(sessionId: string, { after = 0, limit = 100 }: MessageRange = {}): Promise<ConversationMessage[]> {
    return this.db.read((tx) => tx.messages.select(sessionId, after, limit).map(toMessage));
  }
}

export function appendMessages(
  tx: Transaction,
  sessionId: string,
  messages: readonly NewMessage[],
  author: { turnId: string | null; orchestrator: string | null } = { turnId: null, orchestrator: null },
): ConversationMessage[] {
  if (messages.length === 0) return [];
  const last = tx.messages.lastPosition(sessionId);
  return messages.map((message, index) => {
    const { orchestrator = author.orchestrator } = message;
    const place = { turnId: author.turnId, orchestrator, sessionId, position: last + index + 1, createdAt: tx.now };
    const row = toMessageRow(message, place);
    tx.messages.insert(row);
    return toMessage(row);
  });
}

/** Implements ConversationLog.window. The cost depends on the window, not on the length of the log. */
export function readWindow(tx: Transaction, sessionId: string, limit: number): ConversationMessage[] {
  if (limit <= 0) return [];
  const last = tx.messages.lastPosition(sessionId);
  const after = Math.max(0, last - limit);
  const recent = tx.messages.select(sessionId, after, limit).map(toMessage);
  if (after === 0) return recent;
  const first = tx.messages.get({ sessionId, position: 1 });
  return first?.role === 'system' ? [toMessage(first), ...recent] : recent;
}
