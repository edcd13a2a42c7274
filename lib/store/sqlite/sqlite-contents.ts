import { type StateAddress, type StateQuery, type StateSelection } from '../../ledger/state.store.js';
import { type CheckpointRow, type DocumentRow, type MessageRow } from '../core/rows.js';
import { type CheckpointTable, type DocumentTable, type MessageTable } from '../core/tables.js';
import { type SqliteConnection, SqliteTable } from './sqlite-table.js';

export class SqliteCheckpoints
  extends SqliteTable<CheckpointRow, Pick<CheckpointRow, 'orchestrator' | 'sessionId' | 'turnIndex'>>
  implements CheckpointTable
{
  private readonly selectBefore = `SELECT ${this.columns} FROM {checkpoint}
    WHERE orchestrator = ? AND session_id = ? AND turn_index < ? ORDER BY turn_index DESC LIMIT ?`;

  constructor(connection: SqliteConnection) {
    super(connection, 'checkpoint');
  }

  latest(orchestrator: string, sessionId: string): CheckpointRow | undefined {
    return this.select(orchestrator, sessionId, Number.MAX_SAFE_INTEGER, 1)[0];
  }

  lastIndex(orchestrator: string, sessionId: string): number | undefined {
    const { last } = this.connection
      .statement('SELECT MAX(turn_index) AS last FROM {checkpoint} WHERE orchestrator = ? AND session_id = ?')
      .get(orchestrator, sessionId) as { last: number | null };
    return last ?? undefined;
  }

  select(orchestrator: string, sessionId: string, before: number, limit: number): CheckpointRow[] {
    return this.all(this.selectBefore, orchestrator, sessionId, before, limit);
  }

  sessions(orchestrator: string, prefix: string, after: string, limit: number): string[] {
    // A range instead of LIKE, because it uses the primary key and the prefix is not a pattern. DEL sorts after every character
    // of an id.
    const rows = this.connection
      .statement(
        `SELECT DISTINCT session_id AS id FROM {checkpoint}
         WHERE orchestrator = ? AND session_id > ? AND session_id >= ? AND session_id < ?
         ORDER BY session_id LIMIT ?`,
      )
      .all(orchestrator, after, prefix, `${prefix}\u007f`, limit) as { id: string }[];
    return rows.map(({ id }) => id);
  }

  orchestrators(sessionId: string): string[] {
    return this.names(namesOf('checkpoint', 'orchestrator'), sessionId, sessionId);
  }

  deleteBefore(orchestrator: string, sessionId: string, before: number): number {
    return this.run(
      'DELETE FROM {checkpoint} WHERE orchestrator = ? AND session_id = ? AND turn_index < ?',
      orchestrator,
      sessionId,
      before,
    );
  }
}

export class SqliteMessages
  extends SqliteTable<MessageRow, Pick<MessageRow, 'sessionId' | 'position'>>
  implements MessageTable
{
  constructor(connection: SqliteConnection) {
    super(connection, 'message');
  }

  lastPosition(sessionId: string): number {
    const { last } = this.connection
      .statement('SELECT MAX(position) AS last FROM {message} WHERE session_id = ?')
      .get(sessionId) as { last: number | null };
    return last ?? 0;
  }

  select(sessionId: string, after: number, limit: number): MessageRow[] {
    return this.all(
      `SELECT ${this.columns} FROM {message} WHERE session_id = ? AND position > ? ORDER BY position LIMIT ?`,
      sessionId,
      after,
      limit,
    );
  }

  /** Jumps from session to session in the primary key. The cost does not depend on the length of the logs. */
  sessions(after: string, limit: number): string[] {
    const rows = this.connection
      .statement(
        `WITH RECURSIVE found (id) AS (
           SELECT MIN(session_id) FROM {message} WHERE session_id > ?
           UNION ALL
           SELECT (SELECT MIN(session_id) FROM {message} WHERE session_id > found.id) FROM found WHERE found.id IS NOT NULL
         )
         SELECT id FROM found WHERE id IS NOT NULL LIMIT ?`,
      )
      .all(after, limit) as { id: string }[];
    return rows.map(({ id }) => id);
  }

  clear(sessionId: string): number {
    return this.run('DELETE FROM {message} WHERE session_id = ?', sessionId);
  }
}

export class SqliteDocuments extends SqliteTable<DocumentRow, StateAddress> implements DocumentTable {
  constructor(connection: SqliteConnection) {
    super(connection, 'document');
  }

  expect(): void {
    // Rows are read on demand.
  }

  getAll(addresses: readonly StateAddress[]): (DocumentRow | undefined)[] {
    return addresses.map((address) => this.get(address));
  }

  select({ after, limit, ...selection }: StateQuery, now: number): DocumentRow[] {
    const { sql, values } = liveOf(selection, now);
    // In one scope the index finds the key. For a (scope, key) pair, it would scan the scope from its start.
    const inScope = after?.scope === selection.scope;
    const behind = !after ? '' : inScope ? 'AND key > ?' : 'AND (scope, key) > (?, ?)';
    const place = !after ? [] : inScope ? [after.key] : [after.scope, after.key];
    return this.all(
      `SELECT ${this.columns} FROM {document} ${sql} ${behind} ORDER BY scope, key LIMIT ?`,
      ...[...values, ...place, limit],
    );
  }

  count(selection: StateSelection, now: number): number {
    const { sql, values } = liveOf(selection, now);
    const count = this.connection.statement(`SELECT COUNT(*) AS count FROM {document} ${sql}`).get(...values);
    return (count as { count: number }).count;
  }

  namespaces(sessionId: string): string[] {
    return this.names(namesOf('document', 'namespace'), sessionId, sessionId);
  }

  clear(sessionId: string, namespace: string, now: number): number {
    const live = this.count({ sessionId, namespace }, now);
    this.run('DELETE FROM {document} WHERE session_id = ? AND namespace = ?', sessionId, namespace);
    return live;
  }

  deleteExpired(now: number, limit: number): number {
    return this.run(
      `DELETE FROM {document} WHERE rowid IN
       (SELECT rowid FROM {document} WHERE expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?)`,
      now,
      limit,
    );
  }

  deleteIdle(namespace: string, keep: number, now: number, limit: number): number {
    const live = 'FROM {document} WHERE namespace = ? AND (expires_at IS NULL OR expires_at > ?)';
    return this.run(
      `DELETE FROM {document} WHERE rowid IN
       (SELECT rowid ${live} AND (accessed_at, rowid) <=
          (SELECT accessed_at, rowid ${live} ORDER BY accessed_at DESC, rowid DESC LIMIT 1 OFFSET ?)
        ORDER BY accessed_at, rowid LIMIT ?)`,
      ...[namespace, now, namespace, now, keep, limit],
    );
  }
}

function liveOf({ sessionId, namespace, scope }: StateSelection, now: number): { sql: string; values: unknown[] } {
  const live = 'WHERE session_id = ? AND namespace = ? AND (expires_at IS NULL OR expires_at > ?)';
  return scope === undefined
    ? { sql: live, values: [sessionId, namespace, now] }
    : { sql: `${live} AND scope = ?`, values: [sessionId, namespace, now, scope] };
}

/**
 * Returns a query for the distinct values of a column in one session. It jumps from value to value in an index that
 * begins with the session, so the number of rows per value does not matter. Parameters: the session, twice.
 */
export function namesOf(table: string, column: string): string {
  const next = `SELECT MIN(${column}) FROM {${table}} WHERE session_id = ?`;
  return `WITH RECURSIVE found (name) AS (
    ${next}
    UNION ALL
    SELECT (${next} AND ${column} > found.name) FROM found WHERE found.name IS NOT NULL
  )
  SELECT name FROM found WHERE name IS NOT NULL`;
}
