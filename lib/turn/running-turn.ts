import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * Which turn the present code runs in. What a handler leaves behind, a connection or a timer, keeps this for as long as it
 * lives: so it leads to nothing of the turn, and has nothing once the turn is over.
 */
export interface RunningTurn {
  /** Its own session and, when a handler waits for it, that handler's, and so on; none once nothing waits for it any more. */
  waitingSessions: readonly string[];
}

export const runningTurn = new AsyncLocalStorage<RunningTurn>();

/** Sessions whose running turns wait for the present code: a turn of theirs could not start before it ends. */
export function waitingSessions(): readonly string[] {
  return runningTurn.getStore()?.waitingSessions ?? [];
}
