import { type SessionRow } from '../core/rows.js';

/** A row of `session_surface`. */
export type SurfaceRow = readonly [surfaceId: string, userId: string, sessionId: string];

/** Returns the rows that a change of a session deletes and inserts. `undefined`: the session does not exist. */
export function surfaceChanges(
  before: SessionRow | undefined,
  after: SessionRow | undefined,
): { detached: SurfaceRow[]; attached: SurfaceRow[] } {
  const isSame = before?.surfaces === after?.surfaces && before?.userId === after?.userId;
  const [old, current] = isSame ? [[], []] : [rowsOf(before), rowsOf(after)];
  return { detached: missingIn(current, old), attached: missingIn(old, current) };
}

function rowsOf(session: SessionRow | undefined): SurfaceRow[] {
  if (!session) return [];
  return surfacesOf(session).map((surfaceId) => [surfaceId, session.userId, session.id]);
}

export function surfacesOf({ surfaces }: SessionRow): string[] {
  return JSON.parse(surfaces) as string[];
}

/** Returns the rows that the others do not contain. All are of one session. */
function missingIn(others: readonly SurfaceRow[], rows: readonly SurfaceRow[]): SurfaceRow[] {
  return rows.filter(
    ([surfaceId, userId]) => !others.some(([surface, user]) => surface === surfaceId && user === userId),
  );
}
