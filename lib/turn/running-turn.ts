import { AsyncLocalStorage } from 'node:async_hooks';
import { type HandedPromises } from './handed-promises.js';
import { type Awaits, type HandlerWaits } from './handler-waits.js';

/**
 * The turn that the current code runs in. Connections and timers that a handler leaves behind keep this object alive.
 * It must not reference the turn, and is emptied when the turn has ended.
 */
export interface RunningTurn {
  /**
   * The turn's session and those of the handlers that wait for it, directly or indirectly; empty when the turn has
   * ended.
   */
  waitingSessions: readonly string[];
  /** The waits of its handler for other turns; `null` when the turn has ended. */
  waits: HandlerWaits | null;
  /** The promises that its handler received; `null` when the handler has returned. */
  promises: HandedPromises | null;
}

export const runningTurn = new AsyncLocalStorage<RunningTurn>();

/**
 * Returns sessions whose running turns wait for the current code: their next turns could not start before it ends.
 */
export function waitingSessions(): readonly string[] {
  return runningTurn.getStore()?.waitingSessions ?? [];
}

/**
 * Waits for another turn; in a handler, through {@link HandlerWaits}. @throws TooManyWaitingParentsError,
 * TurnReentryError
 */
export function waitForTurn<T>(wait: (awaits?: Awaits) => Promise<T>): Promise<T> {
  const waits = runningTurn.getStore()?.waits;
  return waits ? waits.during(wait) : wait();
}

/**
 * Calls a function whose promise is returned to the application. In a handler, a rejection that is not awaited does not
 * end the process, see {@link HandedPromises}.
 * @param call its name in the log
 */
export function handOut<T>(call: string, work: () => Promise<T>): Promise<T> {
  const promises = runningTurn.getStore()?.promises;
  return promises ? promises.hand(call, work()) : work();
}
