import { setTimeout as delay } from 'node:timers/promises';
import { StateConflictError } from './state.errors.js';

const MAX_ATTEMPTS = 200;
const MAX_PAUSE_MS = 50;

/** Returned by an attempt if the state was changed concurrently. */
export const CONTESTED: unique symbol = Symbol('contested');

/**
 * Repeats an attempt until the state is not changed concurrently. Uses random, growing delays, so that one of many
 * writers succeeds each time.
 * @throws StateConflictError if no attempt succeeds
 */
export async function untilUncontested<T>(sessionId: string, attempt: () => Promise<T | typeof CONTESTED>): Promise<T> {
  for (let tries = 1; tries <= MAX_ATTEMPTS; tries += 1) {
    const result = await attempt();
    if (result !== CONTESTED) return result;
    await delay(Math.random() * Math.min(tries, MAX_PAUSE_MS));
  }
  throw new StateConflictError(sessionId, MAX_ATTEMPTS);
}
