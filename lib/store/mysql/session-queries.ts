import { type SessionFilter } from '../core/tables.js';
import { sessionConditions, type SqlValue, type Term } from '../sql/session-conditions.js';
import { places, type Statement, statement } from './statement.js';
import { SQL } from './tables-sql.js';

export function selectSessions(filter: SessionFilter, limit: number): Statement {
  const { from, where, values } = conditions(filter);
  return statement(
    `SELECT ${SQL.session.columns} FROM ${from} ${where}
     ORDER BY last_activity_at DESC, created_at DESC, id LIMIT ?`,
    ...values,
    limit,
  );
}

/** Selects the sessions that hold the surfaces, one row per held surface. */
export function selectHolders(filter: SessionFilter, surfaceIds: readonly string[]): Statement {
  const { from, where, values } = conditions(filter, surfaceIds);
  return statement(`SELECT id FROM ${from} ${where}`, ...values);
}

export function selectCount(filter: SessionFilter): Statement {
  const { from, where, values } = conditions(filter);
  return statement(`SELECT COUNT(*) AS total FROM ${from} ${where}`, ...values);
}

function conditions(
  filter: SessionFilter,
  surfaceIds: readonly string[] = filter.surfaceId === undefined ? [] : [filter.surfaceId],
): { from: string; where: string; values: SqlValue[] } {
  const holding: Term = [`surface_id IN (${places(surfaceIds)}) AND session_id = id`, ...surfaceIds];
  return { from: source(filter), ...sessionConditions(filter, surfaceIds.length > 0 ? holding : undefined) };
}

/** For one user, checks each session. For all users, starts with the surface. */
function source({ userId, surfaceId }: SessionFilter): string {
  if (surfaceId === undefined) return '{session}';
  return userId === undefined
    ? '{session_surface} STRAIGHT_JOIN {session}'
    : '{session} STRAIGHT_JOIN {session_surface}';
}
