import { Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';
import { hashed } from '../common/digests.js';

const logger = new Logger('TurnHandler');

type Executor<T> = ConstructorParameters<typeof Promise<T>>[0];

/** A promise that records whether it was awaited. Promises derived from it are handed to the same handler. */
class HandedPromise<T> extends Promise<T> {
  isObserved = false;
  private readonly derived: HandedPromise<unknown>[] = [];

  constructor(
    executor: Executor<T>,
    /** Hands out a derived promise. */
    private readonly hand: <Derived>(promise: Promise<Derived>) => HandedPromise<Derived>,
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
    return onFulfilled && onRejected ? derived : this.derive(derived);
  }

  override finally(onFinally?: (() => void) | null): Promise<T> {
    return this.derive(super.finally(onFinally));
  }

  /** Returns true if this promise, or one that is derived from it, would reject without an observer. */
  get isUnobserved(): boolean {
    return !this.isObserved || this.derived.some(({ isUnobserved }) => isUnobserved);
  }

  private derive<Derived>(promise: Promise<Derived>): Promise<Derived> {
    const handed = this.hand(promise);
    this.derived.push(handed);
    return handed;
  }

  /** Prevents an unhandled rejection in the runtime. */
  handle(): void {
    super.then(undefined, () => undefined);
  }
}

/**
 * The promises that this module returns to the handler of one attempt. A stopped attempt, or the end of its handler, fails
 * all calls at once, while handlers await them in sequence. A rejection would then end the process, if only through the
 * promise of an `async` function of the application that awaits the call. From the end on, these promises therefore stay
 * pending instead of rejecting (FIX-87). A rejection that the handler does not observe is logged with its turn (FIX-05).
 */
export class HandedPromises {
  /** Log calls of promises that were rejected before the attempt ended. */
  private readonly rejections: (() => void)[] = [];
  private over = false;
  private handlerEnded = false;

  /** @param isStopped returns true if the attempt has been stopped, or if this error of a call shows that it must stop */
  constructor(
    private readonly turnId: string,
    private readonly isStopped: (error: unknown) => boolean,
  ) {}

  /** @param call the method that the handler called */
  hand<T>(call: string, promise: Promise<T>): Promise<T> {
    return this.observe(call, promise);
  }

  /** Called when the handler has returned or thrown. */
  endHandler(): void {
    this.handlerEnded = true;
  }

  /** Ends the attempt, and logs its unobserved rejections. */
  end(): void {
    this.over = true;
    for (const log of this.rejections.splice(0)) setImmediate(log);
  }

  private observe<T>(call: string, promise: Promise<T>): HandedPromise<T> {
    const handed: HandedPromise<T> = new HandedPromise(
      (resolve, reject) => {
        promise.then(resolve, (error: Error) => {
          handed.handle();
          const isPending = this.isStopped(error) || this.handlerEnded;
          // A promise that rejects also rejects those that are derived from it, which are logged themselves.
          this.add(() => this.log(call, isPending ? handed.isUnobserved : !handed.isObserved, error));
          if (!isPending) reject(error);
        });
      },
      (derived) => this.observe(call, derived),
    );
    return handed;
  }

  private add(log: () => void): void {
    // Wait one task: a handler that awaits the promise now observes it in the current task.
    if (this.over) setImmediate(log);
    else this.rejections.push(log);
  }

  private log(call: string, isUnobserved: boolean, error: unknown): void {
    if (!isUnobserved) return;
    logger.warn(
      `${call} of turn ${hashed(this.turnId)} was rejected, and its handler did not await it before the attempt ended.`,
      traceOf(error),
    );
  }
}
