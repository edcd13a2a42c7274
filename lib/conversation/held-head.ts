import { isDeepStrictEqual } from 'node:util';
import { mintId } from '../common/ids.js';
import { StoreUnavailableError } from '../common/sessions.error.js';
import { type ConversationHead, FIRST_HEAD } from './conversation-head.js';
import { type ConversationHeads, type StoredHead } from './conversation-heads.js';

/** How long a failure is remembered of which nobody knows whether its session is still there: as long as the longest pause. */
const UNCERTAIN_FAILURE_MS = 3_600_000;

/** Another process has changed the head meanwhile: nothing is written over it. */
export class HeadLostError extends Error {
  constructor() {
    super('Another process has changed the head of the conversation.');
  }
}

/**
 * A head that one process works on. Its lease is part of it, so what an older holder still writes is refused like anything else
 * that was decided over another head, and a lease needs no row of its own.
 *
 * Sessions are deleted meanwhile, and no head may be left of them: one that is new goes by itself until messages were seen
 * ({@link confirm}), because a delete after that takes it along; and what is written over a head that is gone is refused.
 */
export class HeldHead {
  /** Renewals and changes go one after another. */
  private last: Promise<unknown> = Promise.resolve();
  private readonly renewing: NodeJS.Timeout;
  private certain: boolean;
  private lost = false;

  private constructor(
    private readonly heads: ConversationHeads,
    private readonly sessionId: string,
    private stored: StoredHead,
    private readonly holder: string,
    private readonly leaseMs: number,
    private readonly onLost: (error: HeadLostError) => void,
    /** The head that was made for it; `null`: there was one. */
    private readonly made: ConversationHead | null,
  ) {
    this.certain = isLasting(stored.head);
    this.renewing = setInterval(() => void this.renew(), leaseMs / 3);
  }

  /** @returns `null` when somebody else was first */
  static async take(
    heads: ConversationHeads,
    sessionId: string,
    read: StoredHead,
    holder: string,
    leaseMs: number,
    onLost: (error: HeadLostError) => void,
  ): Promise<HeldHead | null> {
    // The first one is made, so that the store says what time it is.
    const first = { ...FIRST_HEAD, id: mintId() };
    const stored = read.version > 0 ? read : await heads.write(sessionId, read, first, leaseMs);
    if (!stored) return null;
    const ttlMs = isLasting(stored.head) ? undefined : leaseMs;
    const taken = await heads.write(sessionId, stored, leased(stored, stored.head, holder, leaseMs), ttlMs);
    return taken && new HeldHead(heads, sessionId, taken, holder, leaseMs, onLost, read.version > 0 ? null : first);
  }

  get head(): ConversationHead {
    return this.stored.head;
  }

  /** Milliseconds since 1970, by the store's clock. */
  now(): number {
    return this.stored.now();
  }

  /** Messages of the session were read since the head is there: so it goes when they do. */
  confirm(): void {
    this.certain = true;
  }

  /** Writes the next head, and goes on holding it. @throws HeadLostError; StoreUnavailableError */
  change(next: (head: ConversationHead) => ConversationHead): Promise<void> {
    return this.write((head) => leased(this.stored, next(head), this.holder, this.leaseMs), this.leaseMs);
  }

  /**
   * Puts a head in the place of this one.
   * @param previous what restoring leads back to from there; default: this one, which is kept
   * @throws as {@link change}
   */
  async replace(
    next: (head: ConversationHead) => ConversationHead,
    previous: number | null = this.head.number,
  ): Promise<void> {
    await this.archive();
    await this.change((head) => ({
      ...next(head),
      number: head.number + 1,
      previous,
      former:
        head.number === 0 || previous !== head.number ? null : { ...head, lease: null, failure: null, former: null },
    }));
  }

  /**
   * Stores the head before under its own name; until then it is part of the head, whoever holds it.
   * @throws as {@link change}
   */
  async archive(): Promise<void> {
    const { former } = this.head;
    if (!former) return;
    await this.heads.store(this.sessionId, former, this.leaseMs);
    // While this succeeds the session is there, and its end is the end of what was stored.
    await this.change((head) => head);
    if (await this.heads.keep(this.sessionId, former)) await this.change((head) => ({ ...head, former: null }));
  }

  /** Writes the last head and lets go of it; nothing stays of one of which nothing came. @throws as {@link change} */
  async end(next: (head: ConversationHead) => ConversationHead = (head) => head): Promise<void> {
    this.stop();
    const last = (head: ConversationHead): ConversationHead => ({ ...next(head), lease: null });
    const ended = last(this.head);
    if (isDeepStrictEqual(ended, this.made)) this.certain = false;
    await this.write(last, ended.failure ? UNCERTAIN_FAILURE_MS : 1);
  }

  /** Renews no more: the lease lapses, unless {@link end} came first. */
  stop(): void {
    clearInterval(this.renewing);
  }

  private async renew(): Promise<void> {
    try {
      await this.change((head) => head);
    } catch (error) {
      const { lease } = this.head;
      const lapsed = lease !== null && this.now() >= Date.parse(lease.until);
      if (!(error instanceof StoreUnavailableError) || lapsed) this.onLost(new HeadLostError());
    }
  }

  /** @param ttlMs when it goes as long as nobody knows whether the session is there */
  private write(next: (head: ConversationHead) => ConversationHead, ttlMs: number): Promise<void> {
    const written = this.last.then(async () => {
      const { heads, sessionId } = this;
      // Whoever has it now comes to the same version in time.
      if (this.lost) throw new HeadLostError();
      const stored = await heads.write(sessionId, this.stored, next(this.head), this.certain ? undefined : ttlMs);
      if (!stored) {
        this.lost = true;
        this.stop();
        throw new HeadLostError();
      }
      this.stored = stored;
    });
    this.last = written.catch(() => undefined);
    return written;
  }
}

/** It was there before anybody compacted. A session that is deleted takes it along. */
function isLasting({ number, log }: ConversationHead): boolean {
  return number > 0 || log !== '';
}

export function isLeased({ head: { lease }, now }: StoredHead): boolean {
  return lease !== null && Date.parse(lease.until) > now();
}

function leased({ now }: StoredHead, head: ConversationHead, holder: string, leaseMs: number): ConversationHead {
  return { ...head, lease: { holder, until: new Date(now() + leaseMs).toISOString() } };
}
