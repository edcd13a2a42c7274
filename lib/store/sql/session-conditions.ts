import { type SessionFilter } from '../core/tables.js';

export type SqlValue = string | number;

/** A term of a WHERE clause and its values, with a `?` for each value. */
export type Term = readonly [sql: string, ...values: SqlValue[]];

/**
 * Yields the conditions of a filter, for dialects with `?` placeholders.
 * @param holding the term that finds the holders of the filter's surface, in the fastest form for the dialect
 * @param state the column, or an expression of it that prevents the use of an index
 */
export function sessionConditions(
  filter: SessionFilter,
  holding: Term | undefined,
  state = 'state',
): { where: string; values: SqlValue[] } {
  const terms = [...termsOf(filter, state), ...(holding ? [holding] : [])];
  return {
    where: terms.length > 0 ? `WHERE ${terms.map(([sql]) => sql).join(' AND ')}` : '',
    values: terms.flatMap(([, ...values]) => values),
  };
}

function* termsOf(filter: SessionFilter, state: string): Generator<Term> {
  const { userId, workspaceId, states, activeAfter, activeBefore, after } = filter;
  if (userId !== undefined) yield ['user_id = ?', userId];
  if (workspaceId === null) yield ['workspace_id IS NULL'];
  else if (workspaceId !== undefined) yield ['workspace_id = ?', workspaceId];
  if (states !== undefined) yield inStates(state, states);
  if (activeAfter !== undefined) yield ['last_activity_at > ?', activeAfter];
  if (activeBefore !== undefined) yield ['last_activity_at < ?', activeBefore];
  if (after === undefined) return;
  const active = Date.parse(after.lastActivityAt);
  const created = Date.parse(after.createdAt);
  // Implied by the next term. It lets an index scan start at the page instead of at the first session.
  yield ['last_activity_at <= ?', active];
  yield [
    '(last_activity_at < ? OR (last_activity_at = ? AND (created_at < ? OR (created_at = ? AND id > ?))))',
    active,
    active,
    created,
    created,
    after.id,
  ];
}

function inStates(state: string, states: readonly string[]): Term {
  return states.length > 0 ? [`${state} IN (${states.map(() => '?').join(', ')})`, ...states] : ['FALSE'];
}
