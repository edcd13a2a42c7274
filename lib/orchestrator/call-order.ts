/** Resolves when something is over. */
interface End {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
}

/**
 * Begins calls one after the other, in their order. Their work runs in parallel, except for a call that must run alone: it
 * begins when the calls before it are over, and the next one begins when it is over.
 */
export class CallOrder {
  /** The latest call that has not begun. */
  private beginning: End | null = null;
  private readonly running = new Set<End>();
  /** The call that runs alone. */
  private alone: End | null = null;

  /**
   * @param isAlone asked when it is the call's turn
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
        // The next call begins in a later microtask: the work of this one has started by then.
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
