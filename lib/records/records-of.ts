import { assertId, assertName } from '../common/ids.js';
import { isFields } from '../common/json.js';
import { InvalidInputError } from '../common/sessions.error.js';

/** Whose records: one of these forms and nothing beside it, so that it is never more than was asked for (NST-25). */
export type RecordsOf =
  | { readonly sessionId: string }
  /** Of the user's sessions in one workspace; `null`: of those in no workspace. */
  | { readonly userId: string; readonly workspaceId: string | null }
  | { readonly userId: string; readonly allWorkspaces: true };

/** @throws InvalidInputError */
export function checkRecordsOf(of: unknown): RecordsOf {
  const given: Readonly<Record<string, unknown>> = isFields(of) ? of : {};
  const { sessionId, userId, workspaceId, allWorkspaces } = given;
  switch (Object.keys(given).sort().join()) {
    case 'sessionId':
      assertId(sessionId, 'of.sessionId');
      return { sessionId };
    case 'userId,workspaceId':
      assertName(userId, 'of.userId');
      if (workspaceId === null) return { userId, workspaceId };
      assertName(workspaceId, 'of.workspaceId');
      return { userId, workspaceId };
    case 'allWorkspaces,userId':
      assertName(userId, 'of.userId');
      if (allWorkspaces === true) return { userId, allWorkspaces };
  }
  throw new InvalidInputError(
    'of',
    'must be { sessionId }, { userId, workspaceId } (null: no workspace) or { userId, allWorkspaces: true }, and have nothing else.',
  );
}
