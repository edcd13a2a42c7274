/** Limits the number of concurrent visits. Waiters get a slot in the order of arrival. */
export class Semaphore {
  private taken = 0;
  private readonly waiting = new Set<() => void>();

  constructor(private readonly size: number) {}

  get hasWaiters(): boolean {
    return this.waiting.size > 0;
  }

  /** @returns false if no slot is free */
  tryAcquire(): boolean {
    if (this.taken >= this.size) return false;
    this.taken += 1;
    return true;
  }

  /** @returns false if no slot became free in time */
  async acquire(timeoutMs: number): Promise<boolean> {
    if (this.tryAcquire()) return true;
    return new Promise((resolve) => {
      const settle = (acquired: boolean): void => {
        clearTimeout(timer);
        withdraw();
        resolve(acquired);
      };
      const withdraw = this.wait(() => settle(true));
      const timer = setTimeout(() => settle(false), timeoutMs);
    });
  }

  /**
   * Waits for a slot without a time limit.
   * @param acquired called once
   * @returns a function that stops waiting
   */
  wait(acquired: () => void): () => void {
    const acquire = (): void => {
      this.waiting.delete(acquire);
      acquired();
    };
    this.waiting.add(acquire);
    return () => void this.waiting.delete(acquire);
  }

  /** Hands the slot to the first waiter, if there is one. */
  release(): void {
    const [next] = this.waiting;
    if (next) next();
    else this.taken -= 1;
  }
}
