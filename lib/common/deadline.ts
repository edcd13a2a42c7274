/** By when an operation must have its answer: one for its wait for a connection and for everything that it sends. */
export class Deadline {
  private readonly end: number;

  constructor(private readonly ms: number) {
    this.end = performance.now() + ms;
  }

  get isOver(): boolean {
    return performance.now() >= this.end;
  }

  /** @throws DeadlineError when it is over */
  check(): void {
    if (this.isOver) throw new DeadlineError(this.ms);
  }

  /** The later one of the two. */
  orLater(other: Deadline): Deadline {
    return other.end > this.end ? other : this;
  }

  /** What the promise gives. @throws DeadlineError when it has not settled by then; whatever it gives later is dropped */
  wait<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new DeadlineError(this.ms)), Math.max(0, this.end - performance.now()));
      promise.then(resolve, reject).finally(() => clearTimeout(timer));
    });
  }
}

export class DeadlineError extends Error {
  constructor(ms: number) {
    super(`There was no answer within ${ms} ms.`);
  }
}
