import { type Session, type SessionState } from '../../ledger/session.js';
import { decodeCursor, type SessionCursor } from '../../ledger/session.cursor.js';
import { type SessionQuery } from '../../ledger/session-query.js';
import { readableList, readAll } from '../core/corrupt-records.js';
import { statesToSeparate } from '../sql/session-conditions.js';
import { type PostgresDatabase } from './postgres-database.js';
import { toSessionFromSql } from './postgres-metadata.js';
import { type SqlRow } from './postgres-rows.js';

const DEFAULT_LIMIT = 50;

interface Statement {
  readonly sql: string;
  readonly values: readonly unknown[];
}

export async function findSession(db: PostgresDatabase, sessionId: string): Promise<Session | null> {
  const sql = 'SELECT row_to_json(session) AS row FROM {session} AS session WHERE id = $1';
  const [found] = await db.query<{ row: SqlRow } | undefined>(sql, [sessionId]);
  return found ? toSessionFromSql(found.row) : null;
}

export async function findSessions(db: PostgresDatabase, query: SessionQuery): Promise<Session[]> {
  return readableList(query.limit ?? DEFAULT_LIMIT, async (limit) => {
    const { sql, values } = findStatement({ ...query, limit });
    return readAll(await db.query<{ row: SqlRow }>(sql, values), ({ row }) => toSessionFromSql(row));
  });
}

export async function countSessions(db: PostgresDatabase, { cursor: _, ...query }: SessionQuery): Promise<number> {
  const { where, values } = new Conditions(query);
  const [{ total }] = await db.query<{ total: string }>(
    `SELECT COUNT(*) AS total FROM {session} AS session ${where}`,
    values,
  );
  return Number(total);
}

const ORDER = 'ORDER BY last_activity_at DESC, created_at DESC, id';

function findStatement(query: SessionQuery): Statement {
  const values: unknown[] = [query.limit ?? DEFAULT_LIMIT];
  const states = statesToSeparate(query, query.state === undefined ? undefined : [query.state].flat());
  const parts = (states?.map((state) => ({ ...query, state })) ?? [query]).map((part) => {
    const { where } = new Conditions(part, values);
    return `(SELECT * FROM {session} AS session ${where} ${ORDER} LIMIT $1)`;
  });
  const found = parts.length > 1 ? `(${parts.join(' UNION ALL ')} ${ORDER} LIMIT $1)` : parts[0];
  return { sql: `SELECT row_to_json(session) AS row FROM ${found} AS session`, values };
}

/** The SQL conditions of a session query. */
class Conditions {
  private readonly terms: string[] = [];

  /** @param values the values of the statement, to which those of the conditions are added */
  constructor(
    { userId, workspaceId, state, surfaceId, activeAfter, activeBefore, cursor }: SessionQuery,
    readonly values: unknown[] = [],
  ) {
    if (userId !== undefined) this.terms.push(`user_id = ${this.value(userId)}`);
    if (workspaceId === null) this.terms.push('workspace_id IS NULL');
    else if (workspaceId !== undefined) this.terms.push(`workspace_id = ${this.value(workspaceId)}`);
    if (state !== undefined) this.inStates(typeof state === 'string' ? [state] : state);
    if (surfaceId !== undefined) this.holding(surfaceId, userId);
    if (activeAfter !== undefined) this.terms.push(`last_activity_at > ${this.value(Date.parse(activeAfter))}`);
    if (activeBefore !== undefined) this.terms.push(`last_activity_at < ${this.value(Date.parse(activeBefore))}`);
    if (cursor !== undefined) this.after(decodeCursor(cursor));
  }

  get where(): string {
    return this.terms.length > 0 ? `WHERE ${this.terms.join(' AND ')}` : '';
  }

  /** @returns the placeholder of a value */
  value(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }

  private inStates(states: readonly SessionState[]): void {
    // For a single state, the index on state also provides the order.
    const [only, ...others] = states;
    this.terms.push(others.length === 0 ? `state = ${this.value(only)}` : `state = ANY(${this.value(states)})`);
  }

  private holding(surfaceId: string, userId: string | undefined): void {
    const ofUser = userId === undefined ? '' : `AND held.user_id = ${this.value(userId)}`;
    this.terms.push(
      `EXISTS (SELECT 1 FROM {session_surface} AS held
        WHERE held.surface_id = ${this.value(surfaceId)} ${ofUser} AND held.session_id = session.id)`,
    );
  }

  private after({ lastActivityAt, createdAt, id }: SessionCursor): void {
    const active = this.value(Date.parse(lastActivityAt));
    const created = this.value(Date.parse(createdAt));
    // The first term is implied by the second. It lets an index scan start at the page instead of at the first session.
    this.terms.push(
      `last_activity_at <= ${active}`,
      `(last_activity_at < ${active} OR created_at < ${created} OR (created_at = ${created} AND id > ${this.value(id)}))`,
    );
  }
}
