/**
 * Lets one suspect run at a time in this process. A turn that was lost twice or more may crash processes, and must not
 * take other suspects with it.
 */
export class SuspectSlot {
  private isTaken = false;
  /** Sessions whose suspects wait for the slot, in order. */
  private readonly waiting = new Set<string>();

  /** @returns false if a suspect is running; the session's suspect then waits for {@link leave} */
  take(sessionId: string): boolean {
    if (this.isTaken) {
      this.waiting.add(sessionId);
      return false;
    }
    this.waiting.delete(sessionId);
    this.isTaken = true;
    return true;
  }

  /** Frees the slot. @returns the session whose suspect has waited longest; notify it */
  leave(): string | undefined {
    this.isTaken = false;
    const [next] = this.waiting;
    if (next !== undefined) this.waiting.delete(next);
    return next;
  }
}
