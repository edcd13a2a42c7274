import { type Stall } from '../stalls.js';

/** No lane with work stalls for longer than this: lanes of killed workers and lost notifications are recovered (TRN-15). */
export function* progress(stalls: readonly Stall[], limitMs: number): Generator<string> {
  for (const { sessionId, turnId, from, to, lengthUs } of stalls) {
    if (lengthUs <= limitMs * 1000) continue;
    yield `session ${sessionId} stood still for ${Math.round(lengthUs / 1000)} ms, from ${from} to ${to}; turn ${turnId} was open`;
  }
}
