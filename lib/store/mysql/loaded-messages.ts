import { type MessageRow } from '../core/rows.js';
import { type MessageTable } from '../core/tables.js';
import { MemoryMessages } from './memory-contents.js';
import { LoadedTable } from './loaded-table.js';
import { type Query, statement } from './statement.js';
import { SQL } from './tables-sql.js';
import { fact, type SessionTerm, type Unit } from './unit.js';

type Key = Pick<MessageRow, 'sessionId' | 'position'>;

export class LoadedMessages extends LoadedTable<MessageRow, Key> implements MessageTable {
  constructor(
    unit: Unit,
    /** Returns queries for data that is likely to be read after messages. */
    private readonly alongside: () => readonly Query[],
    protected override readonly rows = new MemoryMessages(unit.journal),
  ) {
    super(unit, SQL.message, rows, { lockOf: ({ sessionId }) => ({ session: sessionId }) });
  }

  override get(key: Key): MessageRow | undefined {
    const stored = this.unit.learned<number>(fact('last', key.sessionId));
    // Beyond the end of the stored log, only messages of this work exist.
    return stored !== undefined && key.position > stored ? this.rows.get(key) : super.get(key);
  }

  lastPosition(sessionId: string): number {
    const stored = this.unit.recall<number>(fact('last', sessionId), () => ({
      lock: { session: sessionId },
      queries: [this.last({ sql: '?', values: [sessionId], id: () => sessionId })],
      bundled: true,
      more: true,
    }));
    return Math.max(stored, this.rows.lastPosition(sessionId));
  }

  select(sessionId: string, after: number, limit: number): MessageRow[] {
    const stored = this.unit.learned<number>(fact('last', sessionId));
    if (after < (stored ?? Infinity) && limit > 0) this.load(sessionId, after, limit, stored !== undefined);
    return this.rows.select(sessionId, after, limit);
  }

  sessions(after: string, limit: number): string[] {
    const list = 'SELECT DISTINCT session_id AS name FROM {message} WHERE session_id > ? ORDER BY session_id LIMIT ?';
    return this.namesIn(fact('conversed', after, limit), statement(list, after, limit));
  }

  /** Positions are contiguous, so deleted rows are counted without reading them. */
  clear(sessionId: string): number {
    const last = this.lastPosition(sessionId);
    this.drop(this.rows.ofSession(sessionId));
    this.unit.bulk.push(statement('DELETE FROM {message} WHERE session_id = ?', sessionId));
    return last;
  }

  /** Reads the end of the stored log. Uses ORDER BY, because MAX with a variable as the session reads the whole log. */
  last(session: SessionTerm): Query {
    const last = `SELECT position FROM {message} WHERE session_id = ${session.sql} ORDER BY position DESC LIMIT 1`;
    return {
      ...statement(last, ...session.values),
      take: ({ rows }) => {
        const id = session.id();
        if (id !== undefined) this.unit.learn(fact('last', id), rows[0]?.position ?? 0);
      },
    };
  }

  removed(sessionId: string): void {
    this.drop(this.rows.ofSession(sessionId));
  }

  private load(sessionId: string, after: number, limit: number, isWindow: boolean): void {
    const name = fact('messages', sessionId, after, limit);
    this.unit.recall(name, () => {
      const page = 'WHERE session_id = ? AND position > ? ORDER BY position LIMIT ?';
      const take: Query['take'] = ({ rows }) => {
        this.put(rows as unknown as MessageRow[]);
        this.unit.learn(name);
      };
      const query = { ...SQL.message.select(page, sessionId, after, limit), take };
      // A window begins with the system message, if that is the first.
      const first = isWindow && after > 0 ? [this.byKey({ sessionId, position: 1 })] : [];
      return { lock: { session: sessionId }, queries: [query, ...first, ...this.alongside()] };
    });
  }
}
