import { isDone } from '../calls.js';
import { show } from '../describe.js';
import { type Attempt, type Grant, type Run, type SessionRun } from '../run.js';

/**
 * The maximum delay until a handler is aborted after its turn was claimed again. Its worker renews the lease every
 * third of it. On a busy machine timers, answers and the lines of the history are late.
 */
const TOLERANCE_US = 500_000;

/** The error code for a worker that has lost its turn. */
const LOST = 'TURN_FENCED';

/**
 * One handler of a session runs at a time (TRN-03). If two overlap, the one with the lower fence has lost its turn, and
 * must be aborted, unless it could not know: its process was frozen or dead, or had no answer from the store.
 */
export function* handlers(run: Run): Generator<string> {
  for (const session of run.sessions) {
    yield* claimed(session);
    yield* oneAtATime(session, run);
  }
}

/** Every handler was started for a claim, one for each. */
function* claimed({ sessionId, attempts }: SessionRun): Generator<string> {
  const begun = new Map<Grant, Attempt>();
  for (const attempt of attempts) {
    if (!attempt.grant) {
      yield `session ${sessionId}: ${show.attempt(attempt)}, attempt ${attempt.number}, began without a claim of its process`;
      continue;
    }
    const other = begun.get(attempt.grant);
    if (other)
      yield `session ${sessionId}: one claim began two handlers, ${show.attempt(other)} and ${show.attempt(attempt)}`;
    begun.set(attempt.grant, attempt);
  }
}

function* oneAtATime(session: SessionRun, run: Run): Generator<string> {
  let running: Attempt[] = [];
  for (const attempt of session.attempts) {
    running = running.filter((other) => endOf(other, run) > attempt.beganAt);
    for (const other of running) {
      const [stale, current] = fenceOf(other) < fenceOf(attempt) ? [other, attempt] : [attempt, other];
      const deadline = mustEndBy(stale, attempt.beganAt, run);
      if (endOf(stale, run) <= deadline || hadNoAnswer(stale, deadline, run)) continue;
      yield `session ${session.sessionId}: two ran at a time, ${show.attempt(stale)} beside ${show.attempt(current)}; the first was to be stopped by ${deadline}`;
    }
    running.push(attempt);
  }
}

function fenceOf({ grant }: Attempt): number {
  return grant?.fence ?? -Infinity;
}

/** A process without later entries has ended with its handlers. */
function endOf({ endedAt, process }: Attempt, run: Run): number {
  return Math.min(endedAt, run.processes.get(process)?.endsAt ?? Infinity);
}

/** A frozen process can only notice it when it continues. */
function mustEndBy({ process }: Attempt, overlapsFrom: number, run: Run): number {
  let deadline = overlapsFrom + TOLERANCE_US;
  for (const { from, to } of run.processes.get(process)?.frozen ?? []) {
    if (from < deadline && to > overlapsFrom) deadline = to + TOLERANCE_US;
  }
  return deadline;
}

/** Returns true if its last renewal had no answer, so that it could not know of the loss. */
function hadNoAnswer({ turnId, grant }: Attempt, deadline: number, run: Run): boolean {
  const renewals = run.turns
    .get(turnId)
    ?.fenced.filter((call) => call.op === 'renew' && call.args.fence === grant?.fence && call.sentAt < deadline);
  const last = renewals?.at(-1);
  if (!last) return false;
  const isTold = isDone(last) || (last.outcome === 'fail' && last.error === LOST);
  return !isTold || last.answeredAt > deadline;
}
