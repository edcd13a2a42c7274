import { type SessionRow } from '../core/rows.js';
import { compareSessionRows } from '../core/session-order.js';
import { ALL, type SessionFilter, type SessionTable } from '../core/tables.js';
import { surfaceChanges } from '../sql/surface-changes.js';
import { filtersInOrder, sessionConditions, type Term } from '../sql/session-conditions.js';
import { type SqliteConnection, SqliteTable } from './sqlite-table.js';

export class SqliteSessions extends SqliteTable<SessionRow, string> implements SessionTable {
  constructor(connection: SqliteConnection) {
    super(connection, 'session');
  }

  override insert(row: SessionRow): void {
    super.insert(row);
    this.indexSurfaces(undefined, row);
  }

  override update(id: string, patch: Partial<SessionRow>): void {
    const before = patch.surfaces === undefined ? undefined : this.get(id);
    if (before) this.indexSurfaces(before, { ...before, ...patch });
    super.update(id, patch);
  }

  override delete(id: string): void {
    this.indexSurfaces(this.get(id), undefined);
    super.delete(id);
  }

  select(filter: SessionFilter, limit: number): SessionRow[] {
    const filters = filtersInOrder(filter);
    const rows = filters.flatMap((each) => this.selectInOrder(each, limit));
    return filters.length > 1 ? rows.sort(compareSessionRows).slice(0, limit) : rows;
  }

  count(filter: SessionFilter): number {
    const { where, values } = conditionsOf(filter, ALL);
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
    const rows = this.all(
      `SELECT ${this.columns} FROM {session}
       WHERE state = 'expired' AND state_changed_at < ? ORDER BY state_changed_at LIMIT ?`,
      time,
      limit,
    );
    return rows.map(({ id }) => id);
  }

  private selectInOrder(filter: SessionFilter, limit: number): SessionRow[] {
    const { where, values } = conditionsOf(filter, limit);
    return this.all(
      `SELECT ${this.columns} FROM {session} ${where} ORDER BY last_activity_at DESC, created_at DESC, id LIMIT ?`,
      ...values,
      limit,
    );
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

  private indexSurfaces(before: SessionRow | undefined, after: SessionRow | undefined): void {
    const { detached, attached } = surfaceChanges(before, after);
    for (const [surfaceId, userId, sessionId] of detached) {
      const sql = 'DELETE FROM {session_surface} WHERE surface_id = ? AND user_id = ? AND session_id = ?';
      this.run(sql, surfaceId, userId, sessionId);
    }
    for (const row of attached) {
      this.run('INSERT INTO {session_surface} (surface_id, user_id, session_id) VALUES (?, ?, ?)', ...row);
    }
  }
}

function conditionsOf(filter: SessionFilter, limit: number): ReturnType<typeof sessionConditions> {
  const { userId, workspaceId, surfaceId } = filter;
  // SQLite knows neither the limit nor that a user or surface has fewer sessions than a workspace, and a workspace than a
  // state. The plus disables the index on a column.
  const few = userId !== undefined || surfaceId !== undefined;
  const bySurface = surfaceId !== undefined && (userId === undefined || limit === ALL);
  return sessionConditions(filter, holdingOf(filter, bySurface), {
    user: bySurface ? '+user_id' : 'user_id',
    state: few || typeof workspaceId === 'string' ? '+state' : 'state',
    workspace: few ? '+workspace_id' : 'workspace_id',
  });
}

/** For a page of one user, checks each session in order. Otherwise starts with the surface. */
function holdingOf({ userId, surfaceId }: SessionFilter, bySurface: boolean): Term | undefined {
  if (surfaceId === undefined) return undefined;
  const held = 'FROM {session_surface} WHERE surface_id = ?';
  const ofUser: Term = userId === undefined ? [held, surfaceId] : [`${held} AND user_id = ?`, surfaceId, userId];
  const [sql, ...values] = ofUser;
  return bySurface
    ? [`id IN (SELECT session_id ${sql})`, ...values]
    : [`EXISTS (SELECT 1 ${sql} AND session_id = id)`, ...values];
}
