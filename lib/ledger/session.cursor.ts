import { isId } from '../common/ids.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { type Session } from './session.js';

/** The position of a session in the order of `find`: last activity, then creation, both newest first, then id. */
export interface SessionCursor {
  readonly lastActivityAt: string;
  readonly createdAt: string;
  readonly id: string;
}

/** Returns the `nextCursor` of a page that ends with this session. */
export function encodeCursor({ lastActivityAt, createdAt, id }: Session): string {
  return Buffer.from(JSON.stringify([lastActivityAt, createdAt, id])).toString('base64url');
}

/** @throws InvalidInputError for a cursor that {@link encodeCursor} did not create */
export function decodeCursor(cursor: unknown): SessionCursor {
  if (typeof cursor === 'string' && cursor.length <= 1024) {
    try {
      const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
      if (Array.isArray(parts) && parts.length === 3) {
        const [lastActivityAt, createdAt, id] = parts as [unknown, unknown, unknown];
        if (isTime(lastActivityAt) && isTime(createdAt) && isId(id)) return { lastActivityAt, createdAt, id };
      }
    } catch {
      // Continue below: a string that is not JSON is an invalid cursor.
    }
  }
  throw new InvalidInputError('query.cursor', 'must be a nextCursor that an earlier page returned.');
}

/** Returns whether the value is an existing time in the format of sessions, because stores calculate with it. */
function isTime(value: unknown): value is string {
  const time = typeof value === 'string' ? Date.parse(value) : NaN;
  return !Number.isNaN(time) && new Date(time).toISOString() === value;
}

/** Orders sessions like `find`. */
export function compareSessions(a: SessionCursor, b: SessionCursor): number {
  return compare(b.lastActivityAt, a.lastActivityAt) || compare(b.createdAt, a.createdAt) || compare(a.id, b.id);
}

/** Compares by code unit, independent of the locale. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
