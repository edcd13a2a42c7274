import { isTerminal, type Turn } from 'nestjs-agent-sessions';
import { isDone } from '../calls.js';
import { show } from '../describe.js';
import { letsGo, mayLetGo } from '../letting-go.js';
import { type Run, type SessionRun, type TurnRun } from '../run.js';
import { scriptOf } from '../script-of.js';

/**
 * Attempts that end with their process are counted, and only a turn that kills processes fails because of them (FIX-06).
 * @param maxLost number of lost attempts without a new step that fail a turn; null skips this rule
 */
export function* losses(run: Run, maxLost: number | null): Generator<string> {
  for (const session of run.sessions) {
    for (const turn of session.turns) {
      if (!turn.stored) continue;
      yield* blamed(turn, turn.stored, maxLost);
      yield* growing(turn, turn.stored);
      yield* counted(turn, turn.stored, session);
    }
  }
}

/** Returns true if the turn has failed because its attempts were lost. */
export function isWorkerLost({ status, error }: Turn): boolean {
  return status === 'failed' && error?.code === 'WORKER_LOST';
}

/** A turn fails at the limit, and only turns that kill processes reach it. Progress raises the limit (FIX-62). */
function* blamed(turn: TurnRun, stored: Turn, maxLost: number | null): Generator<string> {
  const { lost } = stored;
  if (isWorkerLost(stored) && typeof scriptOf(turn)?.crashAfterMs !== 'number') {
    yield `${show.turn(turn)} failed as WORKER_LOST; its message ends no process`;
  }
  if (maxLost === null) return;
  const most = turn.grants.some(({ steps }) => steps.length > 0) ? 10 * maxLost : maxLost;
  if (isWorkerLost(stored) ? lost >= maxLost && lost <= most : lost < most) return;
  yield `${show.turn(turn)} was lost ${lost} times and ${isWorkerLost(stored) ? 'failed' : 'did not fail'} as WORKER_LOST; the limit is ${maxLost}`;
}

/** Returns the counts of the claims, in the order of their fences, and the final count. */
function* growing(turn: TurnRun, stored: Turn): Generator<string> {
  let before = 0;
  for (const grant of turn.grants) {
    if (grant.lost < before)
      yield `${show.turn(turn)}: lost went back from ${before} to ${grant.lost}, ${show.grant(grant)}`;
    before = grant.lost;
  }
  if (stored.lost < before) yield `${show.turn(turn)}: lost went back from ${before} to ${stored.lost} in the store`;
}

/**
 * Each handler has a claim. If the worker does not release the turn, the claim's lease lapses, and the next claim of the
 * turn counts a lost attempt. Exception: a claim does not count it when it cancels the turn. Claims without an answer may be
 * lost attempts, too.
 */
function* counted(turn: TurnRun, stored: Turn, { claims }: SessionRun): Generator<string> {
  const mayBeLeft = new Set(turn.fenced.filter(mayLetGo).map(({ args }) => args.fence));
  const isLeft = new Set(turn.fenced.filter((call) => isDone(call) && letsGo(call)).map(({ args }) => args.fence));
  let least = 0;
  let most = claims.filter(({ outcome }) => outcome === 'unknown').length;
  const isWrong = (lost: number): boolean => lost < least || lost > most;
  const wrong = (lost: number): string =>
    `${show.turn(turn)}: ${lost} attempts are counted as lost, ${least} to ${most} were`;
  for (const [index, grant] of turn.grants.entries()) {
    // A repeated settle hands over the same claim.
    if (turn.grants[index - 1]?.fence === grant.fence) continue;
    if (isWrong(grant.lost)) yield `${wrong(grant.lost)} before ${show.grant(grant)}`;
    if (!mayBeLeft.has(grant.fence)) least += 1;
    if (!isLeft.has(grant.fence)) most += 1;
  }
  if (least > 0 && (stored.status === 'cancelled' || !isTerminal(stored.status))) least -= 1;
  if (isWrong(stored.lost)) yield wrong(stored.lost);
}
