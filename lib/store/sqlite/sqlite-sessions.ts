import { type SessionRow } from '../core/rows.js';
import { type SessionFilter, type SessionTable } from '../core/tables.js';
import { sessionConditions, type Term } from '../sql/session-conditions.js';
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
    const { where, values } = conditionsOf(filter);
    return this.all(
      `SELECT ${this.columns} FROM {session} ${where} ORDER BY last_activity_at DESC, created_at DESC, id LIMIT ?`,
      ...values,
      limit,
    );
  }

  count(filter: SessionFilter): number {
    const { where, values } = conditionsOf(filter);
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
    // A session expires after its last activity, so the index on last activity finds every candidate.
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

  private indexSurfaces(id: string, before: string[], after: string[]): void {
    for (const surface of before.filter((name) => !after.includes(name))) {
      this.run('DELETE FROM {session_surface} WHERE surface_id = ? AND session_id = ?', surface, id);
    }
    for (const surface of after.filter((name) => !before.includes(name))) {
      this.run('INSERT INTO {session_surface} (surface_id, session_id) VALUES (?, ?)', surface, id);
    }
  }
}

function conditionsOf(filter: SessionFilter): ReturnType<typeof sessionConditions> {
  // A user or surface matches few sessions, a state many. SQLite cannot know this: the plus disables the index on state.
  const few = filter.userId !== undefined || filter.surfaceId !== undefined;
  return sessionConditions(filter, holdingOf(filter), few ? '+state' : 'state');
}

/** For one user, checks each session. For all users, starts with the surface. */
function holdingOf({ userId, surfaceId }: SessionFilter): Term | undefined {
  if (surfaceId === undefined) return undefined;
  return userId === undefined
    ? ['id IN (SELECT session_id FROM {session_surface} WHERE surface_id = ?)', surfaceId]
    : ['EXISTS (SELECT 1 FROM {session_surface} WHERE surface_id = ? AND session_id = id)', surfaceId];
}

function parse(surfaces: string): string[] {
  return JSON.parse(surfaces) as string[];
}
