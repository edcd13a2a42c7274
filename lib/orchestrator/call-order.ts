/**
 * Begins calls one after the other, in their order. Their work runs in parallel, except for a call that must run alone: it
 * begins when the calls before it are over, and the next one begins when it is over.
 */
export class CallOrder {
  /** Resolves when the calls so far have begun. */
  private begun: Promise<unknown> = Promise.resolve();
  private readonly running = new Set<Promise<unknown>>();
  /** Resolves when the last call that ran alone is over. */
  private alone: Promise<unknown> = Promise.resolve();

  /**
   * @param isAlone asked when it is the call's turn
   * @param begin returns the work of the call; a rejection ends the call
   */
  async next<T>(isAlone: () => boolean, begin: () => Promise<() => Promise<T>>): Promise<T> {
    const beginning = this.beginAfter(this.begun, isAlone, begin);
    this.begun = beginning.catch(() => undefined);
    return (await beginning).result;
  }

  private async beginAfter<T>(
    before: Promise<unknown>,
    isAlone: () => boolean,
    begin: () => Promise<() => Promise<T>>,
  ): Promise<{ readonly result: Promise<T> }> {
    await before;
    await this.alone;
    const alone = isAlone();
    if (alone) await Promise.all(this.running);
    const work = await begin();
    const result = work();
    const over = result.catch(() => undefined);
    this.running.add(over);
    void over.then(() => this.running.delete(over));
    if (alone) this.alone = over;
    return { result };
  }
}
