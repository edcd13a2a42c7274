/** A session whose suspect waits for the slot. */
interface Waiting {
  readonly sessionId: string;
  /** When its turn was accepted, ISO-8601. */
  readonly acceptedAt: string;
  readonly resolve: (taken: boolean) => void;
}

/**
 * Lets one suspect run at a time in this process, the oldest first (FIX-83). A turn that was lost twice or more may crash
 * processes, and must not take other suspects with it.
 */
export class SuspectSlot {
  private isTaken = false;
  private closed = false;
  private waiting: Waiting[] = [];

  /** @returns false if a suspect is running: {@link wait} then */
  tryTake(): boolean {
    if (this.isTaken || this.closed) return false;
    this.isTaken = true;
    return true;
  }

  /** Resolves with true when it has taken the slot, and with false if the session already waits, or the process stops. */
  wait(sessionId: string, acceptedAt: string): Promise<boolean> {
    if (this.closed || this.waiting.some((other) => other.sessionId === sessionId)) return Promise.resolve(false);
    if (this.tryTake()) return Promise.resolve(true);
    return new Promise((resolve) => {
      const younger = this.waiting.findIndex((other) => other.acceptedAt > acceptedAt);
      this.waiting.splice(younger === -1 ? this.waiting.length : younger, 0, { sessionId, acceptedAt, resolve });
    });
  }

  /** Hands the slot to the oldest suspect that waits, if there is one. */
  leave(): void {
    const next = this.waiting.shift();
    if (next) next.resolve(true);
    else this.isTaken = false;
  }

  /** Ends all waits: the process stops. */
  close(): void {
    this.closed = true;
    for (const { resolve } of this.waiting.splice(0)) resolve(false);
  }
}
