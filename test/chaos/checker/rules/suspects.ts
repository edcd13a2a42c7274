import { show } from '../describe.js';
import { addTo } from '../group-by.js';
import { type Attempt, type Run } from '../run.js';

/** From this many lost attempts on, a turn is a suspect: it may be the cause. */
const SUSPECT_FROM_LOST = 2;

/**
 * A process runs at most one suspect at a time (FIX-06). Two exceptions: a suspect that waits for another turn releases its slot,
 * which no handler of a run does; and a handler that ignores its abort may still run after its attempt.
 */
export function* suspects(run: Run): Generator<string> {
  const byProcess = new Map<string, Attempt[]>();
  for (const { attempts } of run.sessions) {
    for (const attempt of attempts) {
      if (attempt.grant && attempt.grant.lost >= SUSPECT_FROM_LOST) addTo(byProcess, attempt.process, attempt);
    }
  }
  for (const attempts of byProcess.values()) {
    attempts.sort((a, b) => a.beganAt - b.beganAt);
    let longest = attempts[0];
    for (const attempt of attempts.slice(1)) {
      if (longest.endedAt > attempt.beganAt) {
        yield `two suspects ran at a time: ${show.attempt(attempt)} beside ${show.attempt(longest)}`;
      }
      if (attempt.endedAt > longest.endedAt) longest = attempt;
    }
  }
}
