import { setTimeout as delay } from 'node:timers/promises';
import { StateConflictError } from './state.errors.js';

const MAX_ATTEMPTS = 200;
const MAX_PAUSE_MS = 50;

/** Returned by an attempt that came too late: somebody else changed the state. */
export const CONTESTED: unique symbol = Symbol('contested');

/**
 * Repeats an attempt to change a state until nobody else has changed it meanwhile, with random pauses that grow, so that one of
 * many comes through each time. @throws StateConflictError when it never comes through
 */
export async function untilUncontested<T>(sessionId: string, attempt: () => Promise<T | typeof CONTESTED>): Promise<T> {
  for (let tries = 1; tries <= MAX_ATTEMPTS; tries += 1) {
    const result = await attempt();
    if (result !== CONTESTED) return result;
    await delay(Math.random() * Math.min(tries, MAX_PAUSE_MS));
  }
  throw new StateConflictError(sessionId, MAX_ATTEMPTS);
}
