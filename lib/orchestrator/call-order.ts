/** A promise that resolves when a call starts or ends. */
interface End {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
}

/**
 * Starts calls one after the other, in order. Their work runs in parallel, except for a call that must run alone: it
 * starts when all earlier calls have ended, and the next call starts when it has ended.
 */
export class CallOrder {
  /** The latest call that has not started. */
  private beginning: End | null = null;
  private readonly running = new Set<End>();
  /** The running call that must run alone. */
  private alone: End | null = null;

  /**
   * @param isAlone evaluated when the call is next in order
   * @param begin returns the work of the call; a rejection ends the call
   */
  async next<T>(isAlone: () => boolean, begin: () => Promise<() => Promise<T>>): Promise<T> {
    const before = this.beginning;
    const begun = createEnd();
    this.beginning = begun;
    const over = createEnd();
    try {
      let work: () => Promise<T>;
      try {
        if (before) await before.promise;
        if (this.alone) await this.alone.promise;
        const alone = isAlone();
        if (alone && this.running.size > 0) await Promise.all([...this.running].map(({ promise }) => promise));
        work = await begin();
        this.running.add(over);
        if (alone) this.alone = over;
      } finally {
        // The next call starts in a later microtask, after the work of this one has started.
        if (this.beginning === begun) this.beginning = null;
        begun.resolve();
      }
      return await work();
    } finally {
      this.running.delete(over);
      if (this.alone === over) this.alone = null;
      over.resolve();
    }
  }
}

function createEnd(): End {
  let resolve!: () => void;
  const promise = new Promise<void>((resolved) => (resolve = resolved));
  return { promise, resolve };
}
