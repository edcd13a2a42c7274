/** The deadline of an operation, including its wait for a connection and all its requests. */
export class Deadline {
  private readonly end: number;

  constructor(private readonly ms: number) {
    this.end = performance.now() + ms;
  }

  get isOver(): boolean {
    return performance.now() >= this.end;
  }

  get leftMs(): number {
    return Math.max(0, this.end - performance.now());
  }

  /** The error to throw after the deadline. */
  get error(): DeadlineError {
    return new DeadlineError(this.ms);
  }

  /** @throws DeadlineError after the deadline */
  check(): void {
    if (this.isOver) throw this.error;
  }

  /**
   * Returns the fraction of its duration by which it is later than the other one: 1 if it starts when the other one
   * ends.
   */
  shareAfter(other: Deadline): number {
    return (this.end - other.end) / this.ms;
  }

  /** Returns the later one of the two. */
  orLater(other: Deadline): Deadline {
    return other.end > this.end ? other : this;
  }

  /**
   * Returns the result of the promise.
   * @throws DeadlineError if it does not settle in time; a later result is discarded
   */
  wait<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      // A timer that is set after the event loop was blocked fires too early: Node counts from the start of the iteration.
      const giveUp = (): void => {
        if (this.isOver) reject(this.error);
        else timer = setTimeout(giveUp, this.leftMs);
      };
      let timer = setTimeout(giveUp, this.leftMs);
      promise.then(resolve, reject).finally(() => clearTimeout(timer));
    });
  }
}

export class DeadlineError extends Error {
  constructor(ms: number) {
    super(`No response within ${ms} ms.`);
  }
}
