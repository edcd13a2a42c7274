import { inGroups } from '../common/in-groups.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { SessionNotFoundError } from '../ledger/session.errors.js';
import { type Session } from '../ledger/session.js';
import { isAtomic } from '../ledger/session.store.js';
import { type SessionStore } from '../session/session-store.service.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { checkRecordsOf, type RecordsOf } from './records-of.js';
import { exportSession } from './session-export.js';
import { type SessionRecord } from './session-record.js';

const PAGE = 100;
const ERASED_AT_ONCE = 4;

/** What `SessionRecords.erase` did. */
export interface ErasedRecords {
  /** How many sessions went. */
  readonly sessions: number;
}

/**
 * Everything that is kept of a session or of a user, to hand out and to erase (NST-25). Injectable. Whoever calls it decides who
 * may: nothing here looks at who asks.
 */
export class SessionRecords {
  constructor(
    private readonly sessions: SessionStore,
    private readonly store: SessionsAdapter,
  ) {}

  /**
   * Record by record, session by session; read in pages, so what a session has is never in memory at once. What is written
   * meanwhile may be in it or not. What tools keep as secret is named without its value.
   * @throws InvalidInputError; the iteration SessionNotFoundError for a session that is named and not there, StoreUnavailableError
   */
  export(of: RecordsOf): AsyncIterable<SessionRecord> {
    return this.records(checkRecordsOf(of));
  }

  /** The same as JSON Lines: each a JSON document and a line feed, for `Readable.from()`. @throws as `export` */
  exportLines(of: RecordsOf): AsyncIterable<string> {
    return toLines(this.export(of));
  }

  /**
   * Removes everything that the store keeps of a session, or of all sessions that a user has when it is called and while it goes on.
   * A turn that runs is stopped, and nothing that it still sends is stored: the ids are never accepted again.
   * @throws InvalidInputError; SessionsConfigurationError when sessions live in a store of the application's own, which cannot
   * erase; StoreUnavailableError: call it again
   */
  async erase(of: RecordsOf): Promise<ErasedRecords> {
    const checked = checkRecordsOf(of);
    if (!isAtomic(this.store.sessions)) {
      throw new SessionsConfigurationError(
        'SessionRecords.erase: the sessions are in a store of your own without `erase`. Implement AtomicSessionStoreAdapter for it.',
      );
    }
    if ('sessionId' in checked) return { sessions: (await this.sessions.erase(checked.sessionId)) ? 1 : 0 };
    let erased = 0;
    for (;;) {
      // From the beginning each time: those that were found are gone.
      const found = await this.sessions.find({ ...queryOf(checked), limit: PAGE });
      if (found.length === 0) return { sessions: erased };
      const gone = await inGroups(found, ERASED_AT_ONCE, ({ id }) => this.sessions.erase(id));
      erased += gone.filter(Boolean).length;
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

  /** Those that are used meanwhile come to the front, where a page was read already: until a look at all finds no other one. */
  private async *sessionsOf(of: Exclude<RecordsOf, { sessionId: string }>): AsyncGenerator<Session, void> {
    const seen = new Set<string>();
    for (let before = -1; seen.size > before;) {
      before = seen.size;
      let cursor: string | undefined;
      do {
        const page = await this.sessions.page({
          ...queryOf(of),
          limit: PAGE,
          ...(cursor === undefined ? {} : { cursor }),
        });
        for (const session of page.sessions) {
          if (seen.has(session.id)) continue;
          seen.add(session.id);
          yield session;
        }
        cursor = page.nextCursor;
      } while (cursor !== undefined);
    }
  }
}

/** `allWorkspaces` is what makes it look in every workspace. */
function queryOf(of: Exclude<RecordsOf, { sessionId: string }>): { userId: string; workspaceId?: string | null } {
  const { userId } = of;
  return 'allWorkspaces' in of ? { userId } : { userId, workspaceId: of.workspaceId };
}

async function* toLines(records: AsyncIterable<SessionRecord>): AsyncGenerator<string, void> {
  for await (const record of records) yield `${JSON.stringify(record)}\n`;
}
