import { Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';
import { hashed } from '../common/log-id.js';

const logger = new Logger('TurnHandler');

type Rejected = (promise: HandedPromise<unknown>, error: unknown) => void;

/** A promise that knows whether it was awaited. Those that `then`, `catch` and `finally` derive from it are of the same kind. */
class HandedPromise<T> extends Promise<T> {
  isObserved = false;
  private rejected: Rejected | undefined;

  /** @param rejected is called with a rejection; the runtime then does not count it as unhandled */
  watch(rejected: Rejected): this {
    this.rejected = rejected;
    super.then(undefined, (error: unknown) => rejected(this, error));
    return this;
  }

  override then<Result = T, Caught = never>(
    onFulfilled?: ((value: T) => Result | PromiseLike<Result>) | null,
    onRejected?: ((reason: unknown) => Caught | PromiseLike<Caught>) | null,
  ): Promise<Result | Caught> {
    this.isObserved = true;
    const derived = super.then(onFulfilled, onRejected) as HandedPromise<Result | Caught>;
    return this.rejected ? derived.watch(this.rejected) : derived;
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
    const handed = new HandedPromise<T>((resolve, reject) => void promise.then(resolve, reject));
    return handed.watch((rejected, error) => this.add(() => this.log(call, rejected, error)));
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
