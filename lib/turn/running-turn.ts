import { AsyncLocalStorage } from 'node:async_hooks';
import { type HandedPromises } from './handed-promises.js';
import { type Awaits, type HandlerWaits } from './handler-waits.js';

/**
 * Which turn the present code runs in. What a handler leaves behind, a connection or a timer, keeps this for as long as it
 * lives: so it leads to nothing of the turn, and has nothing once the turn is over.
 */
export interface RunningTurn {
  /** Its own session and, when a handler waits for it, that handler's, and so on; none once nothing waits for it any more. */
  waitingSessions: readonly string[];
  /** Those of its handler for other turns; `null` once it is over. */
  waits: HandlerWaits | null;
  /** What its handler is given to await; `null` once the handler has returned. */
  promises: HandedPromises | null;
}

export const runningTurn = new AsyncLocalStorage<RunningTurn>();

/** Sessions whose running turns wait for the present code: a turn of theirs could not start before it ends. */
export function waitingSessions(): readonly string[] {
  return runningTurn.getStore()?.waitingSessions ?? [];
}

/** Waits for another turn; in a handler, as {@link HandlerWaits} does. @throws TooManyWaitingParentsError, TurnReentryError */
export function waitForTurn<T>(wait: (awaits?: Awaits) => Promise<T>): Promise<T> {
  const waits = runningTurn.getStore()?.waits;
  return waits ? waits.during(wait) : wait();
}

/**
 * Calls what returns a promise to users. In a handler, a rejection that is not awaited does not end the process, see
 * {@link HandedPromises}; elsewhere it is the caller's.
 * @param call its name in the log
 */
export function handOut<T>(call: string, work: () => Promise<T>): Promise<T> {
  const promises = runningTurn.getStore()?.promises;
  return promises ? promises.hand(call, work()) : work();
}
