import { AsyncLocalStorage } from 'node:async_hooks';

/** Which turn the present code runs in, and which sessions' turns wait for it in turn. */
export interface RunningTurn {
  readonly turnId: string;
  /** Its own session and, when a handler waits for it, that handler's, and so on. */
  readonly waitingSessions: readonly string[];
  /** What a handler left behind still runs in its turn's context, but nothing waits for it any more. */
  readonly isOver: () => boolean;
}

export const runningTurn = new AsyncLocalStorage<RunningTurn>();

/** Sessions whose running turns wait for the present code: a turn of theirs could not start before it ends. */
export function waitingSessions(): readonly string[] {
  const running = runningTurn.getStore();
  return running && !running.isOver() ? running.waitingSessions : [];
}
