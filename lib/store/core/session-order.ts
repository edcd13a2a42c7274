import { compareSessions, type SessionCursor } from '../../ledger/session.cursor.js';
import { iso } from './iso.js';
import { type SessionRow } from './rows.js';

type Place = Pick<SessionRow, 'lastActivityAt' | 'createdAt' | 'id'>;

export function cursorOf({ lastActivityAt, createdAt, id }: Place): SessionCursor {
  return { lastActivityAt: iso(lastActivityAt), createdAt: iso(createdAt), id };
}

/** Orders rows as `find` does. */
export function compareSessionRows(a: Place, b: Place): number {
  return compareSessions(cursorOf(a), cursorOf(b));
}
