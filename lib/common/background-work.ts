/** Work that nobody awaits, but for who stops the process. */
export class BackgroundWork {
  private readonly running = new Set<Promise<void>>();

  /** @param work never rejects */
  add(work: Promise<void>): void {
    this.running.add(work);
    void work.finally(() => this.running.delete(work));
  }

  /** Resolves once nothing is under way. */
  async idle(): Promise<void> {
    while (this.running.size > 0) await Promise.all(this.running);
  }
}
