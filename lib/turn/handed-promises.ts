import { Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';
import { hashed } from '../common/log-id.js';

const logger = new Logger('TurnHandler');

type Executor<T> = ConstructorParameters<typeof Promise<T>>[0];

/** A promise that knows whether it was awaited. Promises derived from it are handed to the same handler. */
class HandedPromise<T> extends Promise<T> {
  isObserved = false;

  constructor(
    executor: Executor<T>,
    /** Hands a derived promise. */
    private readonly hand: <Derived>(promise: Promise<Derived>) => Promise<Derived>,
  ) {
    super(executor);
  }

  /** `then` derives plain promises. */
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

  /** The runtime then does not count a rejection as unhandled. */
  handle(): void {
    super.then(undefined, () => undefined);
  }
}

/**
 * The promises that this module hands to the handler of one attempt. A rejection that the handler does not observe is logged
 * with its turn and does not end the process (FIX-05): a cancel rejects all of them at once, and handlers await them in turn.
 */
export class HandedPromises {
  /** Promises that were rejected before the attempt ended, as they are logged. */
  private readonly rejections: (() => void)[] = [];
  private over = false;

  constructor(private readonly turnId: string) {}

  /** @param call what the handler called */
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

  /** The attempt is over. */
  end(): void {
    this.over = true;
    for (const log of this.rejections.splice(0)) setImmediate(log);
  }

  private add(log: () => void): void {
    // A handler that awaits it now observes it within the present task.
    if (this.over) setImmediate(log);
    else this.rejections.push(log);
  }

  private log(call: string, promise: HandedPromise<unknown>, error: unknown): void {
    if (promise.isObserved) return;
    logger.warn(
      `${call} of turn ${hashed(this.turnId)} was rejected, and its handler had not awaited it when the attempt ended.`,
      traceOf(error),
    );
  }
}
