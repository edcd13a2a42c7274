import { type ConversationLog, type MessageRange, type NewMessage } from '../../ledger/conversation.store.js';
import { type ConversationMessage } from '../../ledger/message.js';
import { type StateOwnership } from '../../ledger/state.store.js';
import { toMessage, toMessageFields } from '../core/row-mapping.js';
import { type MessageRow } from '../core/rows.js';
import { type PostgresDatabase } from './postgres-database.js';
import { requiredSession } from './postgres-documents.js';
import { granted } from './postgres-refusals.js';
import { type SqlRow, toRow } from './postgres-rows.js';

/** Stores the message log in PostgreSQL. */
export class PostgresConversations implements ConversationLog {
  constructor(private readonly db: PostgresDatabase) {}

  async append(
    sessionId: string,
    messages: readonly NewMessage[],
    ownership: StateOwnership = {},
  ): Promise<ConversationMessage[]> {
    const required = requiredSession(ownership);
    const args = { session_id: sessionId, messages: messages.map(toMessageFields), require_session: required };
    return granted(await this.db.call<SqlRow[]>('append_to_conversation_v1', args)).map(toMessageFromSql);
  }

  async window(sessionId: string, limit: number): Promise<ConversationMessage[]> {
    const sql = 'SELECT {window_v1}($1, $2) AS messages';
    const [{ messages }] = await this.db.query<{ messages: SqlRow[] }>(sql, [sessionId, limit]);
    return messages.map(toMessageFromSql);
  }

  async page(sessionId: string, { after = 0, limit = 100 }: MessageRange = {}): Promise<ConversationMessage[]> {
    const rows = await this.db.query<{ row: SqlRow }>(
      `SELECT row_to_json(message) AS row FROM {message} AS message
       WHERE session_id = $1 AND position > $2 ORDER BY position LIMIT $3`,
      [sessionId, after, limit],
    );
    return rows.map(({ row }) => toMessageFromSql(row));
  }

  /** Jumps from session to session in the primary key. The cost does not depend on the length of the logs. */
  async sessions(after: string, limit: number): Promise<string[]> {
    const rows = await this.db.query<{ id: string }>(
      `WITH RECURSIVE found (id) AS (
         (SELECT session_id FROM {message} WHERE session_id > $1 ORDER BY session_id LIMIT 1)
         UNION ALL
         SELECT (SELECT session_id FROM {message} WHERE session_id > found.id ORDER BY session_id LIMIT 1)
         FROM found WHERE found.id IS NOT NULL
       )
       SELECT id FROM found WHERE id IS NOT NULL LIMIT $2`,
      [after, limit],
    );
    return rows.map(({ id }) => id);
  }
}

function toMessageFromSql(sql: SqlRow): ConversationMessage {
  return toMessage(toRow<MessageRow>(sql));
}
