import { type SessionFilter } from '../../embedded/tables.js';
import { places, type Statement, statement, type Value } from './statement.js';
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

/** Of which sessions the user's surfaces are; an id for each that a session has. */
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
): { from: string; where: string; values: Value[] } {
  const { userId, workspaceId, states, activeAfter, activeBefore, after } = filter;
  const terms: string[] = [];
  const values: Value[] = [];
  const add = (term: string, ...given: Value[]): void => {
    terms.push(term);
    values.push(...given);
  };
  if (userId !== undefined) add('user_id = ?', userId);
  if (workspaceId === null) add('workspace_id IS NULL');
  else if (workspaceId !== undefined) add('workspace_id = ?', workspaceId);
  if (states !== undefined) add(states.length > 0 ? `state IN (${places(states)})` : 'FALSE', ...states);
  if (surfaceIds.length > 0) add(`surface_id IN (${places(surfaceIds)}) AND session_id = id`, ...surfaceIds);
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
  return { from: source(filter), where: terms.length > 0 ? `WHERE ${terms.join(' AND ')}` : '', values };
}

/** Of one user: look each session up. Of all users: begin with the surface. */
function source({ userId, surfaceId }: SessionFilter): string {
  if (surfaceId === undefined) return '{session}';
  return userId === undefined
    ? '{session_surface} STRAIGHT_JOIN {session}'
    : '{session} STRAIGHT_JOIN {session_surface}';
}
