import { isDeepStrictEqual } from 'node:util';
import { StoreUnavailableError } from '../common/sessions.error.js';
import { type JsonValue } from '../common/json.js';
import { mintId } from '../common/ids.js';
import { type StateDocument, type DocumentStore, type StateWriteOptions } from '../ledger/state.store.js';
import { type ConversationHead, earlierName, FIRST_HEAD, HEAD, readHead } from './conversation-head.js';

/** A head that was read or written. */
export interface StoredHead {
  readonly head: ConversationHead;
  /** The version of the document; 0 if none exists. */
  readonly version: number;
  /**
   * Returns the time in milliseconds since 1970: by the store's clock, or by this process's clock if the store's is
   * unknown.
   */
  readonly now: () => number;
}

/** The current log of a session. */
export interface BegunLog {
  /** The epoch of the log, see StateStore.reset; '' until its first reset. */
  readonly id: string;
  /** The time of the last reset, ISO-8601 by the store's clock; absent until the first reset. */
  readonly begunAt?: string;
}

/** The heads of all sessions. */
export class ConversationHeads {
  constructor(private readonly state: DocumentStore) {}

  /** Returns the current head with the time of the store. */
  async read(sessionId: string): Promise<StoredHead> {
    // Read as an access, which returns the store's time.
    const document = await this.state.get({ ...HEAD, sessionId }, {});
    return document ? toStored(document) : { head: FIRST_HEAD, version: 0, now: () => Date.now() };
  }

  /** Returns the current head for reading only. */
  async peek(sessionId: string): Promise<ConversationHead> {
    const document = await this.state.get({ ...HEAD, sessionId });
    return document ? readHead(document) : FIRST_HEAD;
  }

  /** Returns the epoch of the current log, and when it began. */
  async begun(sessionId: string): Promise<BegunLog> {
    const document = await this.state.get({ ...HEAD, sessionId });
    // A reset creates the head again, and later changes keep its time.
    const { log } = document ? readHead(document) : FIRST_HEAD;
    return { id: log, ...(document && log !== '' ? { begunAt: document.createdAt } : {}) };
  }

  /**
   * Replaces the head that was read.
   * @param ttlMs milliseconds until it expires; absent: it does not expire
   * @returns `null` if another process changed it meanwhile
   */
  async write(
    sessionId: string,
    before: StoredHead,
    head: ConversationHead,
    ttlMs?: number,
  ): Promise<StoredHead | null> {
    const options: StateWriteOptions = { ifVersion: before.version, ...(ttlMs === undefined ? {} : { ttlMs }) };
    try {
      const document = await this.state.set({ ...HEAD, sessionId }, valueOf(head), options);
      return document && toStored(document);
    } catch (error) {
      if (!StoreUnavailableError.isInstance(error)) throw error;
      // The write may have succeeded anyway.
      const after = await this.read(sessionId).catch(() => null);
      if (after && after.version > before.version && isDeepStrictEqual(after.head, head)) return after;
      throw error;
    }
  }

  /** Stores an earlier head temporarily. {@link keep} makes it permanent once it is certain that the session exists. */
  async store(sessionId: string, head: ConversationHead, ttlMs: number): Promise<void> {
    await this.state.set({ ...earlierName(head), sessionId }, valueOf(head), { ttlMs });
  }

  /** Removes the expiry of a head that {@link store} has stored. @returns false if it no longer exists */
  async keep(sessionId: string, head: ConversationHead): Promise<boolean> {
    return (await this.state.append({ ...earlierName(head), sessionId }, { id: mintId(), entries: [] })) !== null;
  }

  /** Returns the latest earlier head whose messages all still exist. */
  async earlier(sessionId: string, head: ConversationHead): Promise<ConversationHead> {
    const { id, takenBack } = head;
    let former = head.former;
    for (let number = head.previous; number !== null;) {
      const earlier = former?.number === number ? former : await this.stored(sessionId, { id, number });
      if (!earlier) break;
      if (takenBack === null || Math.max(earlier.through, earlier.hiddenThrough) < takenBack) return earlier;
      former = null;
      number = earlier.previous;
    }
    return FIRST_HEAD;
  }

  private async stored(
    sessionId: string,
    which: Pick<ConversationHead, 'id' | 'number'>,
  ): Promise<ConversationHead | null> {
    const document = await this.state.get({ ...earlierName(which), sessionId });
    return document && readHead(document);
  }
}

function valueOf(head: ConversationHead): JsonValue {
  return head as unknown as JsonValue;
}

function toStored(document: StateDocument): StoredHead {
  const storeTime = Date.parse(document.accessedAt);
  const readAt = performance.now();
  const now = (): number => storeTime + performance.now() - readAt;
  return { head: readHead(document), version: document.version, now };
}
