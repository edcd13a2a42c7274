/** By when an operation must have its answer: one for its wait for a connection and for everything that it sends. */
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

  /** What a wait in vain ends with. */
  get error(): DeadlineError {
    return new DeadlineError(this.ms);
  }

  /** @throws DeadlineError when it is over */
  check(): void {
    if (this.isOver) throw this.error;
  }

  /** By how much of its time it comes after the other one: 1 when it begins as the other one ends. */
  shareAfter(other: Deadline): number {
    return (this.end - other.end) / this.ms;
  }

  /** The later one of the two. */
  orLater(other: Deadline): Deadline {
    return other.end > this.end ? other : this;
  }

  /** What the promise gives. @throws DeadlineError when it has not settled by then; whatever it gives later is dropped */
  wait<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      // Timers count from when the event loop began its round: one that is set after a standstill comes too early.
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
    super(`There was no answer within ${ms} ms.`);
  }
}
