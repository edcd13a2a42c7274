import { StoreUnavailableError } from '../common/sessions.error.js';
import { type ConversationHead, FIRST_HEAD } from './conversation-head.js';
import { type ConversationHeads, type StoredHead } from './conversation-heads.js';

/** Another process has changed the head meanwhile: nothing is written over it. */
export class HeadLostError extends Error {
  constructor() {
    super('Another process has changed the head of the conversation.');
  }
}

/**
 * A head that one process works on. Its lease is part of it, so what an older holder still writes is refused like anything else
 * that was decided over another head, and a lease needs no row of its own.
 */
export class HeldHead {
  /** Renewals and changes go one after another. */
  private last: Promise<unknown> = Promise.resolve();
  private readonly renewing: NodeJS.Timeout;

  private constructor(
    private readonly heads: ConversationHeads,
    private readonly sessionId: string,
    private stored: StoredHead,
    private readonly holder: string,
    private readonly leaseMs: number,
    private readonly onLost: (error: HeadLostError) => void,
  ) {
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
    const stored = read.version > 0 ? read : await heads.write(sessionId, read, FIRST_HEAD);
    const taken = stored && (await heads.write(sessionId, stored, leased(stored, stored.head, holder, leaseMs)));
    return taken && new HeldHead(heads, sessionId, taken, holder, leaseMs, onLost);
  }

  get head(): ConversationHead {
    return this.stored.head;
  }

  /** Milliseconds since 1970, by the store's clock. */
  now(): number {
    return this.stored.now();
  }

  /** Writes the next head, and goes on holding it. @throws HeadLostError; StoreUnavailableError */
  change(next: (head: ConversationHead) => ConversationHead): Promise<void> {
    return this.write((head) => leased(this.stored, next(head), this.holder, this.leaseMs));
  }

  /** Writes the last head and lets go of it. @throws as {@link change} */
  async end(next: (head: ConversationHead) => ConversationHead = (head) => head): Promise<void> {
    this.stop();
    await this.write((head) => ({ ...next(head), lease: null }));
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

  private write(next: (head: ConversationHead) => ConversationHead): Promise<void> {
    const written = this.last.then(async () => {
      const stored = await this.heads.write(this.sessionId, this.stored, next(this.head));
      if (!stored) throw new HeadLostError();
      this.stored = stored;
    });
    this.last = written.catch(() => undefined);
    return written;
  }
}

export function isLeased({ head: { lease }, now }: StoredHead): boolean {
  return lease !== null && Date.parse(lease.until) > now();
}

function leased({ now }: StoredHead, head: ConversationHead, holder: string, leaseMs: number): ConversationHead {
  return { ...head, lease: { holder, until: new Date(now() + leaseMs).toISOString() } };
}
