import { inGroups } from '../common/batches.js';
import { SessionsConfigurationError, UnreadableRecordError } from '../common/sessions.error.js';
import { SessionNotFoundError } from '../ledger/session.errors.js';
import { type Session } from '../ledger/session.js';
import { isAtomic } from '../ledger/session.store.js';
import { type SessionStore } from '../session/session-store.service.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { checkRecordsOf, type RecordsOf } from './records-of.js';
import { recordsMessages } from './records.messages.js';
import { exportSession } from './session-export.js';
import { type SessionRecord } from './session-record.js';

const PAGE = 100;
const ERASED_AT_ONCE = 4;

/**
 * Exports and erases all data of a session or user (NST-25). Injectable. Callers must authorize the request: these methods do not
 * check permissions.
 */
export class SessionRecords {
  constructor(
    private readonly sessions: SessionStore,
    private readonly store: SessionsAdapter,
  ) {}

  /**
   * Exports records session by session. Reads in pages, so the data of a session is never in memory at once. Concurrent writes may be
   * included or not. The records of a session that is deleted meanwhile end there. Secret entries of tools are listed without their value.
   * @throws InvalidInputError; the iteration throws SessionNotFoundError if the requested session does not exist, StoreUnavailableError,
   * and UnreadableRecordError at its end if the user has sessions that cannot be read
   */
  export(of: RecordsOf): AsyncIterable<SessionRecord> {
    return this.records(checkRecordsOf(of));
  }

  /** Exports the same records as JSON Lines, one JSON document and a line feed each, for `Readable.from()`. @throws as `export` */
  exportLines(of: RecordsOf): AsyncIterable<string> {
    return toLines(this.export(of));
  }

  /**
   * Erases all data of a session, or of all sessions of a user, including sessions created during the call. A running turn is stopped,
   * and its later writes are rejected: the ids are never accepted again.
   * @returns the number of erased sessions
   * @throws InvalidInputError; SessionsConfigurationError if sessions are stored in a custom store without `erase`;
   * StoreUnavailableError: retry the call; UnreadableRecordError if the user has sessions that cannot be read. All others are erased then
   */
  async erase(of: RecordsOf): Promise<{ readonly sessions: number }> {
    const checked = checkRecordsOf(of);
    if (!isAtomic(this.store.sessions)) throw new SessionsConfigurationError(recordsMessages.noErase());
    if ('sessionId' in checked) return { sessions: (await this.sessions.erase(checked.sessionId)) ? 1 : 0 };
    let erased = 0;
    for (let unreadable = 0; ;) {
      // Start from the beginning each time: the sessions found before are deleted.
      const found = await this.sessions.find({ ...queryOf(checked), limit: PAGE });
      if (found.length === 0) {
        // `find` skips unreadable sessions. One that was created meanwhile is found by the next pass.
        const left = await this.sessions.count(queryOf(checked));
        if (left === 0) return { sessions: erased };
        if (left === unreadable) throw unreadableSessions(recordsMessages.notErased(left, erased));
        unreadable = left;
        continue;
      }
      const gone = await inGroups(found, ERASED_AT_ONCE, (session) => this.sessions.erase(session.id, { session }));
      erased += gone.filter(Boolean).length;
      unreadable = 0;
    }
  }

  private async *records(of: RecordsOf): AsyncGenerator<SessionRecord, void> {
    if (!('sessionId' in of)) {
      for await (const session of this.sessionsOf(of)) yield* exportSession(this.store, session);
      return;
    }
    const session = await this.sessions.get(of.sessionId);
    if (!session) throw new SessionNotFoundError(of.sessionId);
    yield* exportSession(this.store, session);
  }

  /**
   * Finds all sessions. Sessions that are used meanwhile move to pages that were already read, so repeat until a pass
   * finds no new one.
   * @throws UnreadableRecordError after the last session, if others cannot be read
   */
  private async *sessionsOf(of: Exclude<RecordsOf, { sessionId: string }>): AsyncGenerator<Session, void> {
    const seen = new Set<string>();
    for (let unreadable = 0; ;) {
      const before = seen.size;
      let found = 0;
      let cursor: string | undefined;
      do {
        const page = await this.sessions.page({
          ...queryOf(of),
          limit: PAGE,
          ...(cursor === undefined ? {} : { cursor }),
        });
        found += page.sessions.length;
        for (const session of page.sessions) {
          if (seen.has(session.id)) continue;
          seen.add(session.id);
          yield session;
        }
        cursor = page.nextCursor;
      } while (cursor !== undefined);
      if (seen.size > before) {
        unreadable = 0;
        continue;
      }
      // One that was created meanwhile is found by the next pass.
      const left = (await this.sessions.count(queryOf(of))) - found;
      if (left <= 0) return;
      if (left === unreadable) throw unreadableSessions(recordsMessages.notExported(left));
      unreadable = left;
    }
  }
}

/** `allWorkspaces` includes every workspace. */
function queryOf(of: Exclude<RecordsOf, { sessionId: string }>): { userId: string; workspaceId?: string | null } {
  const { userId } = of;
  return 'allWorkspaces' in of ? { userId } : { userId, workspaceId: of.workspaceId };
}

function unreadableSessions(message: string): UnreadableRecordError {
  return new UnreadableRecordError('session', '', { message });
}

async function* toLines(records: AsyncIterable<SessionRecord>): AsyncGenerator<string, void> {
  for await (const record of records) yield `${JSON.stringify(record)}\n`;
}
