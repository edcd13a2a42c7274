import { isDeepStrictEqual } from 'node:util';
import { mintId } from '../common/ids.js';
import { StoreUnavailableError } from '../common/sessions.error.js';
import { type ConversationHead, FIRST_HEAD } from './conversation-head.js';
import { type ConversationHeads, type StoredHead } from './conversation-heads.js';

/**
 * The time to remember a failure when it is not known whether the session exists: the longest pause between attempts.
 */
const UNCERTAIN_FAILURE_MS = 3_600_000;

/** Another process changed the head, so it is not overwritten. */
export class HeadLostError extends Error {
  constructor() {
    super('Another process changed the head of the conversation.');
  }
}

/**
 * A head that this process holds. The lease is part of the head, so it needs no separate row, and writes of an
 * earlier holder are rejected like any write based on an outdated version.
 *
 * The session may be deleted meanwhile, and its head must not remain. A new head expires until messages of the session
 * were read ({@link confirm}), because a later delete removes it. A write to a deleted head is rejected.
 */
export class HeldHead {
  /** The latest renewal or change; they run one after another. */
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
    /** The head that was created for this lease; `null` if one existed. */
    private readonly made: ConversationHead | null,
  ) {
    this.certain = isLasting(stored.head);
    this.renewing = setInterval(() => void this.renew(), leaseMs / 3);
  }

  /** @returns `null` if another process took the head first */
  static async take(
    heads: ConversationHeads,
    sessionId: string,
    read: StoredHead,
    holder: string,
    leaseMs: number,
    onLost: (error: HeadLostError) => void,
  ): Promise<HeldHead | null> {
    // Creates the first head to read the store's clock.
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

  /** Returns the time by the store's clock, in milliseconds since 1970. */
  now(): number {
    return this.stored.now();
  }

  /**
   * Records that messages of the session were read after the head was created: a delete of the session removes both.
   */
  confirm(): void {
    this.certain = true;
  }

  /**
   * Writes the next head and continues to hold it.
   * @throws HeadLostError, StoreUnavailableError
   */
  change(next: (head: ConversationHead) => ConversationHead): Promise<void> {
    return this.write((head) => leased(this.stored, next(head), this.holder, this.leaseMs), this.leaseMs);
  }

  /**
   * Replaces this head.
   * @param previous the number of the head to restore from the new one. Default: the number of this head, which is
   * kept.
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
   * Stores the previous head under its own name. Until then it is part of the current head, even for another holder.
   * @throws as {@link change}
   */
  async archive(): Promise<void> {
    const { former } = this.head;
    if (!former) return;
    await this.heads.store(this.sessionId, former, this.leaseMs);
    // A write to a deleted head is rejected. If this one succeeds, the session exists, and everything stored for it too.
    await this.change((head) => head);
    if (await this.heads.keep(this.sessionId, former)) await this.change((head) => ({ ...head, former: null }));
  }

  /**
   * Writes the last head and releases it. A head that was created for this lease and has not changed expires at once.
   * @throws as {@link change}
   */
  async end(next: (head: ConversationHead) => ConversationHead = (head) => head): Promise<void> {
    this.stop();
    const last = (head: ConversationHead): ConversationHead => ({ ...next(head), lease: null });
    const ended = last(this.head);
    if (isDeepStrictEqual(ended, this.made)) this.certain = false;
    await this.write(last, ended.failure ? UNCERTAIN_FAILURE_MS : 1);
  }

  /** Stops the renewal. The lease expires, unless {@link end} was called before. */
  stop(): void {
    clearInterval(this.renewing);
  }

  private async renew(): Promise<void> {
    try {
      await this.change((head) => head);
    } catch (error) {
      const { lease } = this.head;
      const lapsed = lease !== null && this.now() >= Date.parse(lease.until);
      if (!StoreUnavailableError.isInstance(error) || lapsed) this.onLost(new HeadLostError());
    }
  }

  /** @param ttlMs the lifetime of the head while it is not known whether the session exists */
  private write(next: (head: ConversationHead) => ConversationHead, ttlMs: number): Promise<void> {
    const written = this.last.then(async () => {
      const { heads, sessionId } = this;
      // The new holder will reach the same version number.
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

/** Returns whether the head existed before any compaction. Deleting the session removes it. */
function isLasting({ number, log }: ConversationHead): boolean {
  return number > 0 || log !== '';
}

export function isLeased({ head: { lease }, now }: StoredHead): boolean {
  return lease !== null && Date.parse(lease.until) > now();
}

function leased({ now }: StoredHead, head: ConversationHead, holder: string, leaseMs: number): ConversationHead {
  return { ...head, lease: { holder, until: new Date(now() + leaseMs).toISOString() } };
}
