import { type SessionFilter } from '../core/tables.js';
import { sessionConditions, type SqlValue, type Term } from '../sql/session-conditions.js';
import { places, type Statement, statement } from './statement.js';
import { SQL } from './tables-sql.js';

/** Starts with the sessions, whose index has the order of the results. */
const BY_SESSION = '{session} STRAIGHT_JOIN {session_surface}';
/** Starts with the holders of a surface. */
const BY_SURFACE = '{session_surface} STRAIGHT_JOIN {session}';

/** @param filter one of `filtersInOrder` */
export function selectSessions(filter: SessionFilter, limit: number): Statement {
  const { from, where, values } = conditions(filter, filter.userId === undefined ? BY_SURFACE : BY_SESSION);
  return statement(
    `SELECT ${SQL.session.columns} FROM ${from} ${where}
     ORDER BY last_activity_at DESC, created_at DESC, id LIMIT ?`,
    ...values,
    limit,
  );
}

/** Selects the sessions that hold the surfaces, one row per held surface. */
export function selectHolders(filter: SessionFilter, surfaceIds: readonly string[]): Statement {
  const { from, where, values } = conditions(filter, BY_SURFACE, surfaceIds);
  return statement(`SELECT id FROM ${from} ${where}`, ...values);
}

export function selectCount(filter: SessionFilter): Statement {
  const { from, where, values } = conditions(filter, BY_SURFACE);
  return statement(`SELECT COUNT(*) AS total FROM ${from} ${where}`, ...values);
}

function conditions(
  filter: SessionFilter,
  join: string,
  surfaceIds: readonly string[] = filter.surfaceId === undefined ? [] : [filter.surfaceId],
): { from: string; where: string; values: SqlValue[] } {
  if (surfaceIds.length === 0) return { from: '{session}', ...sessionConditions(filter, undefined) };
  const { userId } = filter;
  const held = `surface_id IN (${places(surfaceIds)}) AND session_id = id`;
  const holding: Term =
    userId === undefined ? [held, ...surfaceIds] : [`${held} AND {session_surface}.user_id = ?`, ...surfaceIds, userId];
  return { from: join, ...sessionConditions(filter, holding, { user: '{session}.user_id' }) };
}
