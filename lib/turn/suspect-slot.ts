/**
 * Lets one suspect run at a time in this process: a turn that was lost twice or more may be what ends processes, and must not
 * take others with it.
 */
export class SuspectSlot {
  private isTaken = false;
  /** Sessions whose suspects wait for the slot, in order. */
  private readonly waiting = new Set<string>();

  /** @returns false when a suspect runs already; the session's suspect waits for {@link leave} then */
  take(sessionId: string): boolean {
    if (this.isTaken) {
      this.waiting.add(sessionId);
      return false;
    }
    this.waiting.delete(sessionId);
    this.isTaken = true;
    return true;
  }

  /** Frees the slot. @returns the session whose suspect waited longest, to be notified */
  leave(): string | undefined {
    this.isTaken = false;
    const [next] = this.waiting;
    if (next !== undefined) this.waiting.delete(next);
    return next;
  }
}
