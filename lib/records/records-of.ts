import { assertId, assertName } from '../common/ids.js';
import { isFields } from '../common/json.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { recordsMessages } from './records.messages.js';

/**
 * Selects the records of one session or user. Exactly one of these forms without further keys, so that a typo cannot
 * select more (NST-25).
 */
export type RecordsOf =
  | { readonly sessionId: string }
  /** The user's sessions in one workspace; `null`: those without a workspace. */
  | { readonly userId: string; readonly workspaceId: string | null }
  | { readonly userId: string; readonly allWorkspaces: true };

/** Validates a selection. @throws InvalidInputError */
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
  throw new InvalidInputError('of', recordsMessages.wrongSelection());
}
