import { isDeepStrictEqual } from 'node:util';
import { StoreUnavailableError } from '../common/sessions.error.js';
import { type JsonValue } from '../common/json.js';
import { type StateDocument, type StateName, type StateStore } from '../state/state.store.js';
import { type ConversationHead, FIRST_HEAD, HEAD, headName, readHead } from './conversation-head.js';

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
  constructor(private readonly state: StateStore) {}

  /** The present head, and what time it is for the store. */
  async read(sessionId: string): Promise<StoredHead> {
    // As an access, because that is stamped.
    const document = await this.state.get({ ...HEAD, sessionId }, {});
    return document ? toStored(document) : { head: FIRST_HEAD, version: 0, now: () => Date.now() };
  }

  /**
   * Writes the next head over the one that was read.
   * @returns `null` when somebody else has changed it meanwhile
   */
  async write(sessionId: string, before: StoredHead, head: ConversationHead): Promise<StoredHead | null> {
    try {
      const document = await this.set(sessionId, HEAD, head, before.version);
      return document && toStored(document);
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
      // It may be there all the same.
      const after = await this.read(sessionId).catch(() => null);
      if (after && after.version > before.version && isDeepStrictEqual(after.head, head)) return after;
      throw error;
    }
  }

  /** Keeps a head that is about to be replaced. */
  async keep(sessionId: string, head: ConversationHead): Promise<void> {
    await this.set(sessionId, headName(head.number), { ...head, lease: null, failure: null });
  }

  /** An earlier head. */
  async earlier(sessionId: string, number: number): Promise<ConversationHead | null> {
    const document = await this.state.get({ ...headName(number), sessionId });
    return document && readHead(document);
  }

  private set(
    sessionId: string,
    name: StateName,
    head: ConversationHead,
    ifVersion?: number,
  ): Promise<StateDocument | null> {
    const value = head as unknown as JsonValue;
    return this.state.set({ ...name, sessionId }, value, ifVersion === undefined ? {} : { ifVersion });
  }
}

function toStored(document: StateDocument): StoredHead {
  const storeTime = Date.parse(document.accessedAt);
  const readAt = performance.now();
  const now = (): number => storeTime + performance.now() - readAt;
  return { head: readHead(document), version: document.version, now };
}
