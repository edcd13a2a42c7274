import { isDeepStrictEqual } from 'node:util';
import { StoreUnavailableError } from '../common/sessions.error.js';
import { type JsonValue } from '../common/json.js';
import { mintId } from '../common/ids.js';
import { type StateDocument, type DocumentStore, type StateWriteOptions } from '../ledger/state.store.js';
import { type ConversationHead, earlierName, FIRST_HEAD, HEAD, readHead } from './conversation-head.js';

/** A head as it was read or written. */
export interface StoredHead {
  readonly head: ConversationHead;
  /** 0 before there is one. */
  readonly version: number;
  /** Milliseconds since 1970 by the store's clock, from then on; by this process's where the store has not said. */
  readonly now: () => number;
}

/** The heads of all sessions. */
export class ConversationHeads {
  constructor(private readonly state: DocumentStore) {}

  /** The present head, and what time it is for the store. */
  async read(sessionId: string): Promise<StoredHead> {
    // As an access, because that is stamped.
    const document = await this.state.get({ ...HEAD, sessionId }, {});
    return document ? toStored(document) : { head: FIRST_HEAD, version: 0, now: () => Date.now() };
  }

  /** The present head, for somebody who will not change it. */
  async peek(sessionId: string): Promise<ConversationHead> {
    const document = await this.state.get({ ...HEAD, sessionId });
    return document ? readHead(document) : FIRST_HEAD;
  }

  /**
   * Writes the next head over the one that was read.
   * @param ttlMs after which it goes by itself; left out: it stays
   * @returns `null` when somebody else has changed it meanwhile
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
      if (!(error instanceof StoreUnavailableError)) throw error;
      // It may be there all the same.
      const after = await this.read(sessionId).catch(() => null);
      if (after && after.version > before.version && isDeepStrictEqual(after.head, head)) return after;
      throw error;
    }
  }

  /** Stores an earlier head for a while. {@link keep} makes it stay, once it is certain that the session is still there. */
  async store(sessionId: string, head: ConversationHead, ttlMs: number): Promise<void> {
    await this.state.set({ ...earlierName(head), sessionId }, valueOf(head), { ttlMs });
  }

  /** @returns false when it is not there any more */
  async keep(sessionId: string, head: ConversationHead): Promise<boolean> {
    return (await this.state.append({ ...earlierName(head), sessionId }, { id: mintId(), entries: [] })) !== null;
  }

  /** The latest head before whose messages are all still there. */
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
