import { Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';
import { loggedId } from '../common/log-details.js';

const logger = new Logger('TurnHandler');

type Executor<T> = ConstructorParameters<typeof Promise<T>>[0];

/** A promise that records who waits for it. Promises derived from it are handed to the same handler. */
class HandedPromise<T> extends Promise<T> {
  isObserved = false;

  constructor(
    executor: Executor<T>,
    /** Hands out a derived promise. */
    private readonly hand: <Derived>(promise: Promise<Derived>) => Promise<Derived>,
    /** Called when code waits for this promise itself: with `await`, `Promise.all` and the like. */
    private readonly onAwait: () => void,
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
    if (!onFulfilled || !onRejected) return this.hand(derived);
    // `await` passes both callbacks, and only they can reject the derived promise.
    this.onAwait();
    return derived;
  }

  override finally(onFinally?: (() => void) | null): Promise<T> {
    this.isObserved = true;
    // A plain promise, because `finally` passes both callbacks to `then`, as `await` does.
    return this.hand(super.then().finally(onFinally));
  }

  /** Prevents an unhandled rejection in the runtime. */
  handle(): void {
    super.then(undefined, () => undefined);
  }
}

/**
 * The promises that this module returns to the handler of one attempt. A rejection that the handler does not observe is
 * logged with its turn and does not end the process (FIX-05): a stop rejects all of them at once, while handlers await
 * them in sequence.
 *
 * The handler's own `async` functions around these promises would reject with them, and this class cannot know which
 * of them the handler awaits. So once the attempt is stopped, a promise that is awaited rejects only if no other one is;
 * the catch and finally blocks of the handler run then. If several are awaited, or the handler has ended, they stay pending (FIX-87).
 */
export class HandedPromises {
  /** Log calls of promises that were rejected before the attempt ended. */
  private readonly rejections: (() => void)[] = [];
  /** Promises that code waits for. */
  private readonly awaited = new Set<Promise<unknown>>();
  /** True if a promise stays pending: the code after it never runs. */
  private isStuck = false;
  private hasHandlerEnded = false;
  private over = false;

  /** @param signal aborts when the attempt is stopped */
  constructor(
    private readonly turnId: string,
    private readonly signal: AbortSignal,
  ) {}

  /** Hands out the promise of a call of the turn. @param call the method that the handler called */
  hand<T>(call: string, promise: Promise<T>): Promise<T> {
    return this.handOut(call, promise, true);
  }

  /**
   * Hands out the promise of a call that needs no turn. It settles if the attempt was over before the call: connections
   * that the handler has left open may make such calls.
   */
  handFree<T>(call: string, promise: Promise<T>): Promise<T> {
    return this.handOut(call, promise, !this.over);
  }

  private handOut<T>(call: string, promise: Promise<T>, isOfTurn: boolean): Promise<T> {
    const isLate = this.hasHandlerEnded;
    let isSettled = false;
    const handed: HandedPromise<T> = new HandedPromise(
      (resolve, reject) => {
        const settle = (settleIt: () => void): void => {
          isSettled = true;
          this.awaited.delete(handed);
          settleIt();
        };
        promise.then(
          (value) => settle(() => resolve(value)),
          (error: Error) => {
            handed.handle();
            this.add(() => {
              if (isLate || !handed.isObserved) this.log(call, error);
            });
            const mayStayPending = isOfTurn && (this.signal.aborted || this.hasHandlerEnded);
            if (!mayStayPending) return settle(() => reject(error));
            // Wait one task: code that awaits the promise of a call that it has just made is known then.
            setImmediate(() => {
              const isAlone = !this.hasHandlerEnded && !this.isStuck && this.awaited.size <= 1;
              if (isAlone || !this.awaited.has(handed)) return settle(() => reject(error));
              this.isStuck = true;
              this.awaited.delete(handed);
            });
          },
        );
      },
      (derived) => this.handOut(call, derived, isOfTurn),
      () => {
        if (!isSettled) this.awaited.add(handed);
      },
    );
    return handed;
  }

  /** Marks the handler as ended: it has returned or thrown. */
  endHandler(): void {
    this.hasHandlerEnded = true;
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

  private log(call: string, error: unknown): void {
    logger.warn(
      `${call} of turn ${loggedId(this.turnId)} was rejected, and its handler did not await it before the attempt ended.`,
      traceOf(error),
    );
  }
}
