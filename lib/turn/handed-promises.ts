import { Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';
import { hashed } from '../common/digests.js';

const logger = new Logger('TurnHandler');

type Executor<T> = ConstructorParameters<typeof Promise<T>>[0];

/** A promise that records whether it was awaited. Promises derived from it are handed to the same handler. */
class HandedPromise<T> extends Promise<T> {
  isObserved = false;

  constructor(
    executor: Executor<T>,
    /** Hands out a derived promise. */
    private readonly hand: <Derived>(promise: Promise<Derived>) => Promise<Derived>,
  ) {
    super(executor);
  }

  /** Makes `then` derive plain promises. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  override then<Result = T, Caught = never>(
    onFulfilled?: ((value: T) => Result | PromiseLike<Result>) | null,
    onRejected?: ((reason: unknown) => Caught | PromiseLike<Caught>) | null,
  ): Promise<Result | Caught> {
    this.isObserved = true;
    const derived = super.then(onFulfilled, onRejected);
    // With both callbacks, as `await` passes them, only the callbacks can reject the derived promise.
    return onFulfilled && onRejected ? derived : this.hand(derived);
  }

  override finally(onFinally?: (() => void) | null): Promise<T> {
    return this.hand(super.finally(onFinally));
  }

  /** Prevents an unhandled rejection in the runtime. */
  handle(): void {
    super.then(undefined, () => undefined);
  }
}

/**
 * The promises that this module returns to the handler of one attempt. A rejection that the handler does not observe is
 * logged with its turn and does not end the process (FIX-05): a cancel rejects all of them at once, while handlers
 * await them in sequence.
 */
export class HandedPromises {
  /** Log calls of promises that were rejected before the attempt ended. */
  private readonly rejections: (() => void)[] = [];
  private over = false;

  constructor(private readonly turnId: string) {}

  /** @param call the method that the handler called */
  hand<T>(call: string, promise: Promise<T>): Promise<T> {
    const handed: HandedPromise<T> = new HandedPromise(
      (resolve, reject) => {
        promise.then(resolve, (error: Error) => {
          handed.handle();
          this.add(() => this.log(call, handed, error));
          reject(error);
        });
      },
      (derived) => this.hand(call, derived),
    );
    return handed;
  }

  /** Ends the attempt, and logs its unobserved rejections. */
  end(): void {
    this.over = true;
    for (const log of this.rejections.splice(0)) setImmediate(log);
  }

  private add(log: () => void): void {
    // Wait one task: a handler that awaits the promise now observes it in the current task.
    if (this.over) setImmediate(log);
    else this.rejections.push(log);
  }

  private log(call: string, promise: HandedPromise<unknown>, error: unknown): void {
    if (promise.isObserved) return;
    logger.warn(
      `${call} of turn ${hashed(this.turnId)} was rejected, and its handler did not await it before the attempt ended.`,
      traceOf(error),
    );
  }
}
