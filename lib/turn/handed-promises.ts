import { Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';
import { loggedId } from '../common/log-details.js';
import { attemptMessages } from './attempt.messages.js';

const logger = new Logger('TurnHandler');

type Executor<T> = ConstructorParameters<typeof Promise<T>>[0];

/**
 * A promise that records how code uses it. The promises that `then`, `catch` and `finally` derive from it can reject
 * without being observed, too. So they are wrapped in the same way.
 */
class HandedPromise<T> extends Promise<T> {
  /** True once code has called `then`, `catch` or `finally`, or awaits the promise. */
  isObserved = false;

  constructor(
    executor: Executor<T>,
    /** Wraps a derived promise. */
    private readonly hand: <Derived>(promise: Promise<Derived>) => Promise<Derived>,
    /** Called when code waits for this promise itself: with `await`, `Promise.all` and the like. */
    private readonly onAwait: () => void,
  ) {
    super(executor);
  }

  /** Makes `super.then` derive plain promises: the constructor of this class needs more arguments. */
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
    // `await` passes both callbacks. Only they can reject the derived promise, so it is not wrapped.
    this.onAwait();
    return derived;
  }

  override finally(onFinally?: (() => void) | null): Promise<T> {
    this.isObserved = true;
    // On a plain promise, because `finally` passes both callbacks to `then`, which would count as an `await`.
    return this.hand(super.then().finally(onFinally));
  }

  /** Prevents an unobserved rejection from ending the process. */
  ignoreRejection(): void {
    super.then(undefined, () => undefined);
  }
}

/**
 * Wraps the promises that the handler of one attempt receives from this package, for example from `turn.step`. A stop
 * rejects all of them at once, but a handler usually awaits one after the other. Node ends a process when a promise
 * rejects that no code observes.
 *
 * - A rejection that the handler does not observe is logged with its turn, and does not end the process (FIX-05).
 * - After a stop, an awaited promise rejects only if it is the only one, so that the handler's catch and finally blocks
 *   run. If several are awaited, or the handler has ended, they stay pending (FIX-87). Example: `load` is an `async`
 *   function of the handler that awaits a step. In `const a = load(), b = load(); await a;` no code observes `b` yet,
 *   and this class cannot see `b`. If the step in `b` rejected, `b` would reject too and end the process.
 */
export class HandedPromises {
  /** One function per promise that was rejected before the attempt ended. It logs the rejection if it is unobserved. */
  private readonly rejections: (() => void)[] = [];
  /** Pending promises that code waits for. */
  private readonly awaited = new Set<Promise<unknown>>();
  /**
   * True once a promise stays pending: the code that awaits it does not continue. `awaited` no longer contains it, so
   * the size of `awaited` no longer shows that a promise is the only one. Other awaited ones stay pending, too.
   */
  private isStuck = false;
  /** True once the handler has returned or thrown. A handler that ignores a stop may do so after the attempt's end. */
  private hasHandlerEnded = false;
  private over = false;

  /** @param signal aborts when the attempt is stopped */
  constructor(
    private readonly turnId: string,
    private readonly signal: AbortSignal,
  ) {}

  /** Wraps the promise of a method of the turn, such as `turn.step`. @param call the method's name, for the log */
  hand<T>(call: string, promise: Promise<T>): Promise<T> {
    return this.handOut(call, promise, true);
  }

  /**
   * Wraps the promise of a call that works outside of turns, too, such as `turns.execute`. The promise of a call after
   * the end of the attempt always settles: connections that the handler has left open may make such calls.
   */
  handFree<T>(call: string, promise: Promise<T>): Promise<T> {
    return this.handOut(call, promise, !this.over);
  }

  /** @param endsWithAttempt whether the promise may stay pending after a stop or after the handler's end */
  private handOut<T>(call: string, promise: Promise<T>, endsWithAttempt: boolean): Promise<T> {
    // Code that the handler left running makes the call. A rejection is then logged even if the code observes it.
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
            handed.ignoreRejection();
            this.logAtEnd(() => {
              if (isLate || !handed.isObserved) this.log(call, error);
            });
            const mayStayPending = endsWithAttempt && (this.signal.aborted || this.hasHandlerEnded);
            if (!mayStayPending) return settle(() => reject(error));
            // Wait one task: the code that has just made a call has then awaited its promise, which `awaited` contains.
            setImmediate(() => {
              const isAlone = !this.hasHandlerEnded && !this.isStuck && this.awaited.size <= 1;
              if (isAlone || !this.awaited.has(handed)) return settle(() => reject(error));
              this.isStuck = true;
              this.awaited.delete(handed);
            });
          },
        );
      },
      (derived) => this.handOut(call, derived, endsWithAttempt),
      () => {
        if (!isSettled) this.awaited.add(handed);
      },
    );
    return handed;
  }

  /** Whether the handler waits for a promise that stays pending, so that it does not continue. */
  get keepsHandler(): boolean {
    return this.isStuck;
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

  /** Calls the function at the end of the attempt, or soon if the attempt has ended. */
  private logAtEnd(log: () => void): void {
    // Wait one task: a handler that awaits the promise now observes it in the current task.
    if (this.over) setImmediate(log);
    else this.rejections.push(log);
  }

  private log(call: string, error: unknown): void {
    logger.warn(attemptMessages.notAwaited(call, loggedId(this.turnId)), traceOf(error));
  }
}
