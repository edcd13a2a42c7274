import { type StateAddress } from '../../../state/state.store.js';
import { isTerminal, type TurnStatus } from '../../../turn/turn.js';
import {
  type CheckpointRow,
  type DocumentRow,
  type LaneRow,
  type MessageRow,
  type SessionRow,
  type StepRow,
  type TurnRow,
} from '../../embedded/rows.js';
import {
  type CheckpointTable,
  type DocumentTable,
  type LaneTable,
  type MessageTable,
  type SessionFilter,
  type SessionTable,
  type StepTable,
  type TurnTable,
} from '../../embedded/tables.js';
import { type SqliteConnection, SqliteTable } from './sqlite-table.js';

export class SqliteSessions extends SqliteTable<SessionRow, string> implements SessionTable {
  constructor(connection: SqliteConnection) {
    super(connection, 'session');
  }

  override insert(row: SessionRow): void {
    super.insert(row);
    this.indexSurfaces(row.id, [], parse(row.surfaces));
  }

  override update(id: string, patch: Partial<SessionRow>): void {
    if (patch.surfaces !== undefined)
      this.indexSurfaces(id, parse(this.get(id)?.surfaces ?? '[]'), parse(patch.surfaces));
    super.update(id, patch);
  }

  override delete(id: string): void {
    this.indexSurfaces(id, parse(this.get(id)?.surfaces ?? '[]'), []);
    super.delete(id);
  }

  select(filter: SessionFilter, limit: number): SessionRow[] {
    const { where, values } = this.conditions(filter);
    return this.all(
      `SELECT ${this.columns} FROM {session} ${where} ORDER BY last_activity_at DESC, created_at DESC, id LIMIT ?`,
      ...values,
      limit,
    );
  }

  count(filter: SessionFilter): number {
    const { where, values } = this.conditions(filter);
    const { total } = this.connection.statement(`SELECT COUNT(*) AS total FROM {session} ${where}`).get(...values) as {
      total: number;
    };
    return total;
  }

  stale(activeBefore: number, limit: number): SessionRow[] {
    return this.all(
      `SELECT ${this.columns} FROM {session} WHERE state = 'active' AND last_activity_at < ? ORDER BY last_activity_at LIMIT ?`,
      activeBefore,
      limit,
    );
  }

  ended(activeBefore: number | null, createdBefore: number | null, limit: number): SessionRow[] {
    const idle = this.endedBy("state IN ('created', 'suspended') AND last_activity_at < ?", activeBefore, limit);
    const old = this.endedBy("state <> 'expired' AND created_at < ?", createdBefore, limit);
    const rows = new Map([...idle, ...old].map((row) => [row.id, row]));
    return [...rows.values()].slice(0, limit);
  }

  expiredBefore(time: number, limit: number): string[] {
    // A session expires after its last activity, so the index on that finds all that are old enough.
    const rows = this.all(
      `SELECT ${this.columns} FROM {session}
       WHERE state = 'expired' AND last_activity_at < ? AND state_changed_at < ? ORDER BY last_activity_at LIMIT ?`,
      time,
      time,
      limit,
    );
    return rows.map(({ id }) => id);
  }

  private endedBy(condition: string, before: number | null, limit: number): SessionRow[] {
    if (before === null) return [];
    return this.all(
      `SELECT ${this.columns} FROM {session} WHERE ${condition}
       AND NOT EXISTS (SELECT 1 FROM {lane} WHERE session_id = {session}.id AND depth > 0) LIMIT ?`,
      before,
      limit,
    );
  }

  private conditions(filter: SessionFilter): { where: string; values: unknown[] } {
    const { userId, workspaceId, states, surfaceId, activeAfter, activeBefore, after } = filter;
    const terms: string[] = [];
    const values: unknown[] = [];
    const add = (term: string, ...given: unknown[]): void => {
      terms.push(term);
      values.push(...given);
    };
    if (userId !== undefined) add('user_id = ?', userId);
    if (workspaceId === null) add('workspace_id IS NULL');
    else if (workspaceId !== undefined) add('workspace_id = ?', workspaceId);
    if (states !== undefined) add(`state IN (${states.map(() => '?').join(', ')})`, ...states);
    // Of one user: look each session up. Of all users: begin with the surface.
    if (surfaceId !== undefined && userId !== undefined) {
      add('EXISTS (SELECT 1 FROM {session_surface} WHERE surface_id = ? AND session_id = id)', surfaceId);
    } else if (surfaceId !== undefined) {
      add('id IN (SELECT session_id FROM {session_surface} WHERE surface_id = ?)', surfaceId);
    }
    if (activeAfter !== undefined) add('last_activity_at > ?', activeAfter);
    if (activeBefore !== undefined) add('last_activity_at < ?', activeBefore);
    if (after !== undefined) {
      const active = Date.parse(after.lastActivityAt);
      const created = Date.parse(after.createdAt);
      // Follows from the next one, and lets an index begin at the page instead of at the first session.
      add('last_activity_at <= ?', active);
      add(
        '(last_activity_at < ? OR (last_activity_at = ? AND (created_at < ? OR (created_at = ? AND id > ?))))',
        active,
        active,
        created,
        created,
        after.id,
      );
    }
    return { where: terms.length > 0 ? `WHERE ${terms.join(' AND ')}` : '', values };
  }

  private indexSurfaces(id: string, before: string[], after: string[]): void {
    for (const surface of before.filter((name) => !after.includes(name))) {
      this.run('DELETE FROM {session_surface} WHERE surface_id = ? AND session_id = ?', surface, id);
    }
    for (const surface of after.filter((name) => !before.includes(name))) {
      this.run('INSERT INTO {session_surface} (surface_id, session_id) VALUES (?, ?)', surface, id);
    }
  }
}

export class SqliteLanes extends SqliteTable<LaneRow, string> implements LaneTable {
  constructor(connection: SqliteConnection) {
    super(connection, 'lane');
  }

  due(now: number, limit: number): LaneRow[] {
    return this.all(
      `SELECT ${this.columns} FROM {lane} WHERE attention_at IS NOT NULL AND attention_at <= ? ORDER BY attention_at LIMIT ?`,
      now,
      limit,
    );
  }

  /** Ends the leases of a worker that is known to be gone; what was rung in its process must be rung again. */
  lapseAll(now: number): void {
    this.run(
      `UPDATE {lane} SET lease_until = IIF(running_turn IS NULL, NULL, ?), attention_at = ?, offers = 0
       WHERE attention_at IS NOT NULL AND (running_turn IS NOT NULL OR offers > 0)`,
      now,
      now,
    );
  }
}

export class SqliteTurns extends SqliteTable<TurnRow, string> implements TurnTable {
  constructor(connection: SqliteConnection) {
    super(connection, 'turn');
  }

  head(sessionId: string): TurnRow | undefined {
    return this.one(
      `SELECT ${this.columns} FROM {turn} WHERE session_id = ? AND settled_at IS NULL ORDER BY position LIMIT 1`,
      sessionId,
    );
  }

  open(sessionId: string): TurnRow[] {
    return this.all(
      `SELECT ${this.columns} FROM {turn} WHERE session_id = ? AND settled_at IS NULL ORDER BY position`,
      sessionId,
    );
  }

  byIdempotencyKey(sessionId: string, key: string): TurnRow | undefined {
    return this.one(
      `SELECT ${this.columns} FROM {turn} WHERE session_id = ? AND idempotency_key = ? AND idempotency_key IS NOT NULL`,
      sessionId,
      key,
    );
  }

  select(sessionId: string, statuses: readonly TurnStatus[] | null, after: number, limit: number): TurnRow[] {
    const filter = statuses === null ? '' : `AND status IN (${statuses.map(() => '?').join(', ')})`;
    // Lets the index of open turns answer, which costs nothing of the lane's history.
    const open = statuses === null || statuses.some(isTerminal) ? '' : 'AND settled_at IS NULL';
    return this.all(
      `SELECT ${this.columns} FROM {turn} WHERE session_id = ? AND position > ? ${filter} ${open} ORDER BY position LIMIT ?`,
      sessionId,
      after,
      ...(statuses ?? []),
      limit,
    );
  }
}

export class SqliteSteps extends SqliteTable<StepRow, Omit<StepRow, 'value'>> implements StepTable {
  constructor(connection: SqliteConnection) {
    super(connection, 'step');
  }

  ofTurn(turnId: string): StepRow[] {
    return this.all(`SELECT ${this.columns} FROM {step} WHERE turn_id = ?`, turnId);
  }
}

export class SqliteCheckpoints
  extends SqliteTable<CheckpointRow, Pick<CheckpointRow, 'orchestrator' | 'sessionId' | 'turnIndex'>>
  implements CheckpointTable
{
  constructor(connection: SqliteConnection) {
    super(connection, 'checkpoint');
  }

  latest(orchestrator: string, sessionId: string): CheckpointRow | undefined {
    return this.select(orchestrator, sessionId, Number.MAX_SAFE_INTEGER, 1)[0];
  }

  select(orchestrator: string, sessionId: string, before: number, limit: number): CheckpointRow[] {
    return this.all(
      `SELECT ${this.columns} FROM {checkpoint}
       WHERE orchestrator = ? AND session_id = ? AND turn_index < ? ORDER BY turn_index DESC LIMIT ?`,
      orchestrator,
      sessionId,
      before,
      limit,
    );
  }

  sessions(orchestrator: string, prefix: string, after: string, limit: number): string[] {
    // A range instead of LIKE: it uses the primary key, and the prefix is not a pattern. No id reaches beyond '~'.
    const rows = this.connection
      .statement(
        `SELECT DISTINCT session_id AS id FROM {checkpoint}
         WHERE orchestrator = ? AND session_id > ? AND session_id >= ? AND session_id < ?
         ORDER BY session_id LIMIT ?`,
      )
      .all(orchestrator, after, prefix, `${prefix}\u007f`, limit) as { id: string }[];
    return rows.map(({ id }) => id);
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
}

export class SqliteDocuments extends SqliteTable<DocumentRow, StateAddress> implements DocumentTable {
  constructor(connection: SqliteConnection) {
    super(connection, 'document');
  }

  deleteExpired(now: number, limit: number): number {
    return this.run(
      `DELETE FROM {document} WHERE rowid IN
       (SELECT rowid FROM {document} WHERE expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?)`,
      now,
      limit,
    );
  }
}

function parse(surfaces: string): string[] {
  return JSON.parse(surfaces) as string[];
}
