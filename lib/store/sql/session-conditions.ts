import { SESSION_STATES, type SessionState } from '../../ledger/session.js';
import { type SessionFilter } from '../core/tables.js';

export type SqlValue = string | number;

/** A term of a WHERE clause and its values, with a `?` for each value. */
export type Term = readonly [sql: string, ...values: SqlValue[]];

interface Columns {
  readonly user: string;
  readonly state: string;
  readonly workspace: string;
}

/**
 * Returns the states to select separately, `null` if one query selects all. Without a user, a workspace and a surface, the
 * index on state finds the sessions, and has the order of `find` only within one state.
 */
export function statesToSeparate(
  { userId, workspaceId, surfaceId }: Pick<SessionFilter, 'userId' | 'workspaceId' | 'surfaceId'>,
  states = SESSION_STATES,
): readonly SessionState[] | null {
  const isIndexed = userId !== undefined || typeof workspaceId === 'string' || surfaceId !== undefined;
  return isIndexed || states.length === 0 ? null : [...new Set(states)];
}

/** Divides a filter by {@link statesToSeparate}. */
export function filtersInOrder(filter: SessionFilter): readonly SessionFilter[] {
  const states = statesToSeparate(filter, filter.states);
  return states?.map((state) => ({ ...filter, states: [state] })) ?? [filter];
}

/**
 * Yields the conditions of a filter, for dialects with `?` placeholders.
 * @param holding the term that finds the holders of the filter's surface, in the fastest form for the dialect
 * @param columns the columns, or expressions of them that prevent the use of an index
 */
export function sessionConditions(
  filter: SessionFilter,
  holding: Term | undefined,
  { user = 'user_id', state = 'state', workspace = 'workspace_id' }: Partial<Columns> = {},
): { where: string; values: SqlValue[] } {
  const terms = [...termsOf(filter, { user, state, workspace }), ...(holding ? [holding] : [])];
  return {
    where: terms.length > 0 ? `WHERE ${terms.map(([sql]) => sql).join(' AND ')}` : '',
    values: terms.flatMap(([, ...values]) => values),
  };
}

function* termsOf(filter: SessionFilter, { user, state, workspace }: Columns): Generator<Term> {
  const { userId, workspaceId, states, activeAfter, activeBefore, after } = filter;
  if (userId !== undefined) yield [`${user} = ?`, userId];
  if (workspaceId === null) yield ['workspace_id IS NULL'];
  else if (workspaceId !== undefined) yield [`${workspace} = ?`, workspaceId];
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
