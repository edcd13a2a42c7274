import { AsyncLocalStorage } from 'node:async_hooks';

/** Which turn the present code runs in, and which sessions' turns wait for it in turn. */
export interface RunningTurn {
  readonly turnId: string;
  /** Its own session and, when a handler waits for it, that handler's, and so on. */
  readonly waitingSessions: readonly string[];
}

export const runningTurn = new AsyncLocalStorage<RunningTurn>();
