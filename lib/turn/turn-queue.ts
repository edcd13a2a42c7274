import { hasMethods } from '../common/has-methods.js';

/** A doorbell, nothing more: says that a session has work. What it loses or repeats cannot lose or reorder a turn. */
export interface TurnQueue {
  /** @param delayMs not before this many milliseconds; default 0 */
  ring(sessionId: string, delayMs?: number): Promise<void>;
  /** From now on, calls the handler for rung sessions: in parallel for different ones, never twice at once for one. */
  process(handler: (sessionId: string) => Promise<void>): Promise<void>;
  /** Starts no more calls of the handler. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Pauses, waits for the handlers that run, and lets go of everything. */
  close(): Promise<void>;
}

export function isTurnQueue(value: unknown): value is TurnQueue {
  return hasMethods(value, ['ring', 'process', 'pause', 'resume', 'close']);
}
